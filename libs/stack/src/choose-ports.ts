import { freePort } from '@scheduling/embedded';
import { databaseServices, type Service, services } from '@scheduling/runtime';
import type { Ports, Surroundings } from './service-table.ts';

/** The ports of every service: free ones, except for the gateway's if it is given. */
export async function choosePorts(gatewayPort: number): Promise<Pick<Surroundings, 'ports' | 'adminPorts'>> {
  const ports = services.map(async (service): Promise<[Service, Ports]> => {
    const main = service === 'gateway' && gatewayPort !== 0 ? gatewayPort : await freePort();
    return [service, { main, metrics: await freePort() }];
  });
  const adminPorts = databaseServices.map(async (service) => [service, await freePort()] as const);
  return {
    ports: Object.fromEntries(await Promise.all(ports)) as Surroundings['ports'],
    adminPorts: Object.fromEntries(await Promise.all(adminPorts)) as Surroundings['adminPorts'],
  };
}
