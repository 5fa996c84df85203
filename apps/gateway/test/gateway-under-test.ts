import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { freePort } from '@scheduling/embedded';
import { createClient, type RpcClient } from '@scheduling/rpc';
import {
  longTimeout,
  nowhere,
  type ServiceName,
  type ServiceProcess,
  startAppProcess,
  startServiceProcesses,
  startTestNats,
  testLogger,
} from '@scheduling/testing';
import type { Problem } from '../src/problem.ts';
import { readConfig } from '../src/config.ts';
import { createGatewayService } from '../src/service.ts';

export interface GatewayUnderTest extends AsyncDisposable {
  port: number;
  metricsPort: number;
  url: string;
}

/** Services that are not given are unreachable. */
const defaults = {
  LISTEN_HOST: '127.0.0.1',
  NATS_URL: `nats://${nowhere}`,
  IDENTITY_ADDRESS: nowhere,
  CALENDAR_ADDRESS: nowhere,
  CUSTOMER_ADDRESS: nowhere,
  NOTIFICATION_ADDRESS: nowhere,
  WEBHOOK_ADDRESS: nowhere,
  PUBLIC_URL: 'https://scheduling.test',
};

/** The gateway on free ports, in this process. */
export async function startGateway(settings: Record<string, string> = {}): Promise<GatewayUnderTest> {
  const config = readConfig({ ...defaults, HTTP_PORT: '0', METRICS_PORT: '0', ...settings });
  const service = await createGatewayService(config, { logger: testLogger('gateway') });
  return {
    port: service.port,
    metricsPort: service.metricsPort,
    url: `http://127.0.0.1:${service.port}`,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

export interface GatewayWithKeys<Name extends ServiceName = 'identity'> extends GatewayUnderTest {
  admin: RpcClient<typeof AdminServiceService>;
  services: Record<Name, ServiceProcess>;
  /** An API key of the CRM `one`, which has no rate limit. */
  key: string;
  /** Sends a request with this key. */
  send(method: string, path: string, body?: unknown): Promise<{ status: number; problem: Problem }>;
}

/**
 * A gateway in front of a real identity service and the given others, with the CRMs `one` and `two`.
 * It has a process of its own, so that it reads requests also while the test is busy.
 */
export async function startGatewayWithKeys<Name extends ServiceName = 'identity'>(
  ...others: Name[]
): Promise<GatewayWithKeys<Name | 'identity'>> {
  await using starting = new AsyncDisposableStack();
  const nats = starting.use(await startTestNats());
  const services = starting.use(await startServiceProcesses(['identity', ...others], nats.url));
  const { identity } = services;
  const admin = starting.use(createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout));
  await admin.createCrm({ crmId: 'one', requestsPerMinute: 0 });
  await admin.createCrm({ crmId: 'two', requestsPerMinute: 0 });
  const { key } = await admin.createKey({ crmId: 'one' });
  const port = await freePort();
  const settings = { ...defaults, HTTP_PORT: String(port), NATS_URL: nats.url('gateway'), ...services.addresses };
  const { metricsPort } = starting.use(await startAppProcess('gateway', settings));
  const url = `http://127.0.0.1:${port}`;
  const running = starting.move();
  return {
    port,
    metricsPort,
    url,
    admin,
    services,
    key,
    send: async (method, path, body) => {
      const response = await fetch(url + path, {
        method,
        headers: { 'x-service-client-id': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, problem: (await response.json()) as Problem };
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
