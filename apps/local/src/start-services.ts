import { join } from 'node:path';
import { type Child, describeExit, freePort, lastLines, spawnChild, waitUntilReady } from '@scheduling/embedded';
import { repositoryRoot, type Settings, withCertificatesOf } from './config.ts';
import type { DataFolder } from './data-folder.ts';
import type { Reporter } from './reporter.ts';
import { databaseServices, host, type Ports, type Service, serviceEnvironment, services, type Surroundings } from './service-table.ts';

export interface ServiceRunner {
  /** Migrates the databases to the current schema, one process per service. */
  migrate(): Promise<void>;
  /** Starts a service and returns when its `/readyz` is green. */
  start(service: Service): Promise<Child>;
}

const migrationTimeoutMs = 60_000;
const readyTimeoutMs = 60_000;
const probeTimeoutMs = 2_000;
/** In MiB. The heap that Node chooses in a pod with the 512 MiB of the manifests; on a machine with more memory it would hardly collect garbage. */
const maxHeap = 268;
/** As in the image of the services (ADR 18). */
export const collection = ['--max-semi-space-size=8', '--heap-growing-percent=150'];

/** Nobody waits for what notification and webhook do, so requests come first: they get a third of their share. In production, every pod has its own. */
const niceness: Partial<Record<Service, number>> = { notification: 5, webhook: 5 };

/** Runs the services as in production: one process each, configured only by environment variables. */
export function createServiceRunner(settings: Settings, folder: DataFolder, around: Surroundings, reporter: Reporter): ServiceRunner {
  const spawnService = (service: Service, command: string[]): Promise<Child> =>
    spawnChild({
      command: process.execPath,
      args: [`--max-heap-size=${maxHeap}`, ...collection, join(repositoryRoot, 'apps', service, 'src', 'main.ts'), ...command],
      cwd: join(repositoryRoot, 'apps', service),
      environment: { ...withCertificatesOf(service, settings.inherited), ...serviceEnvironment(service, around) },
      logFile: join(folder.path, 'logs', `${service}.log`),
      niceness: niceness[service] ?? 0,
      onSpawn: (pid) => folder.record(service, pid),
    });

  const migrate = async (service: Service): Promise<void> => {
    const child = await spawnService(service, ['migrate']);
    const killTimer = setTimeout(() => void child.stop('SIGTERM', 1_000), migrationTimeoutMs);
    const exit = await child.exited;
    clearTimeout(killTimer);
    if (exit.code !== 0) throw new Error(`migrating ${service} ended with ${describeExit(exit)}. The end of its log:\n${await lastLines(child.logFile)}`);
  };

  return {
    migrate: () => reporter.step('schemas', async () => void (await Promise.all(databaseServices.map(migrate)))),
    start: async (service) => {
      const child = await spawnService(service, []);
      await waitUntilReady(child, () => isReady(around.ports[service].metrics), readyTimeoutMs);
      return child;
    },
  };
}

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

async function isReady(metricsPort: number): Promise<boolean> {
  const response = await fetch(`http://${host}:${metricsPort}/readyz`, { signal: AbortSignal.timeout(probeTimeoutMs) });
  await response.body?.cancel();
  return response.ok;
}
