import { AppointmentServiceService } from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { createMetrics, type Metrics } from '@scheduling/runtime';
import {
  type CertificateAuthority,
  createCertificateAuthority,
  storeCertificate,
  sumSamples,
  testLogger,
} from '@scheduling/testing';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkHealth } from '../src/health.ts';
import {
  type Callers,
  createClient,
  hostOperatorService,
  hostService,
  openCredentials,
  type RpcCredentials,
} from '../src/index.ts';
import { startRpcServer } from '../src/server.ts';
import { someCallers, someHandlers } from './some-methods.ts';

const logger = testLogger('rpc-test');
const request = { crmId: 'crm' };
const list = { crmId: 'crm', providerReference: 'p', includeArchived: false };
const empty = async () => ({});
const created = async () => ({ created: true });
const customerHandlers = someHandlers(CustomerServiceService, {
  getCustomer: empty,
  createCustomer: created,
  updateCustomer: empty,
  deleteCustomer: empty,
});
const appointmentHandlers = someHandlers(AppointmentServiceService, {
  listAppointments: async function* () {
    yield { json: Buffer.alloc(0) };
  },
});
const customerCallers = someCallers(CustomerServiceService, {
  getCustomer: ['gateway', 'calendar'],
  createCustomer: ['gateway'],
  deleteCustomer: ['gateway'],
});
const appointmentCallers = someCallers(AppointmentServiceService, { listAppointments: ['gateway'] });
const forbidden = { category: 'forbidden', code: 'caller.forbidden' };

describe('with mutual TLS, a method', () => {
  let authority: CertificateAuthority;
  let folder: string;
  let stack: AsyncDisposableStack;
  beforeAll(async () => {
    authority = await createCertificateAuthority();
    folder = await mkdtemp(join(tmpdir(), 'scheduling-test-callers-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  beforeEach(() => {
    stack = new AsyncDisposableStack();
  });
  afterEach(() => stack.disposeAsync());

  async function credentialsOf(...names: [string, ...string[]]): Promise<RpcCredentials> {
    const files = await storeCertificate(join(folder, names.join()), await authority.issue(...names), authority);
    return stack.use(openCredentials({ files, logger }));
  }

  async function serve(
    callers: Callers<typeof CustomerServiceService> = customerCallers,
    metrics?: Metrics,
  ): Promise<string> {
    const services = [
      hostService(CustomerServiceService, callers, customerHandlers),
      hostService(AppointmentServiceService, appointmentCallers, appointmentHandlers),
    ];
    const credentials = await credentialsOf('customer');
    const { port } = stack.use(
      await startRpcServer({ host: '127.0.0.1', port: 0, logger, services, credentials, ...(metrics && { metrics }) }),
    );
    return `127.0.0.1:${port}`;
  }

  async function customersAs(address: string, ...names: [string, ...string[]]) {
    return stack.use(
      createClient(CustomerServiceService, 'customer', address, { credentials: await credentialsOf(...names) }),
    );
  }

  it('serves the callers in its entry', async () => {
    const address = await serve();
    const [gateway, calendar] = [await customersAs(address, 'gateway'), await customersAs(address, 'calendar')];
    await expect(gateway.getCustomer(request)).resolves.toBeDefined();
    await expect(calendar.getCustomer(request)).resolves.toBeDefined();
    await expect(
      gateway.deleteCustomer({
        ...request,
        providerReference: 'p',
        customerReference: 'c',
        ignoreFutureAppointments: false,
      }),
    ).resolves.toBeDefined();
  });

  it('refuses every other certificate of the authority', async () => {
    const address = await serve();
    const calendar = await customersAs(address, 'calendar');
    await expect(
      calendar.deleteCustomer({
        ...request,
        providerReference: 'p',
        customerReference: 'c',
        ignoreFutureAppointments: false,
      }),
    ).rejects.toMatchObject(forbidden);
    for (const name of ['stranger', 'customer', 'gateway.example', '*', 'xgateway']) {
      await expect((await customersAs(address, name)).getCustomer(request), name).rejects.toMatchObject(forbidden);
    }
  });

  it('serves a caller with several names if one of them is in its entry', async () => {
    const client = await customersAs(await serve(), 'local', 'gateway');
    await expect(client.getCustomer(request)).resolves.toBeDefined();
    await expect(
      client.updateCustomer({ ...request, providerReference: 'p', customerReference: 'c', userName: 'n' }),
    ).rejects.toMatchObject(forbidden);
  });

  it('is guarded in calls that are made at the same moment, too', async () => {
    const calendar = await customersAs(await serve(), 'calendar');
    const settled = await Promise.allSettled([
      calendar.getCustomer(request),
      calendar.createCustomer({ ...request, providerReference: 'p', customerReference: 'c', userName: 'n' }),
    ]);
    expect(settled).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: forbidden }]);
  });

  it('refuses everybody if it has no entry', async () => {
    const { getCustomer: _missing, ...incomplete } = customerCallers;
    const client = await customersAs(await serve(incomplete as unknown as typeof customerCallers), 'gateway');
    await expect(client.getCustomer(request)).rejects.toMatchObject(forbidden);
  });

  it('that sends a stream is guarded, too', async () => {
    const address = await serve();
    const read = async (name: string): Promise<unknown[]> => {
      const client = stack.use(
        createClient(AppointmentServiceService, 'customer', address, { credentials: await credentialsOf(name) }),
      );
      return Array.fromAsync(client.listAppointments(list));
    };
    await expect(read('gateway')).resolves.toHaveLength(1);
    await expect(read('calendar')).rejects.toMatchObject(forbidden);
  });

  it('of operators serves only the certificate of the admin command', async () => {
    const services = [hostOperatorService(CustomerServiceService, customerHandlers)];
    const { port } = stack.use(
      await startRpcServer({
        host: '127.0.0.1',
        port: 0,
        logger,
        services,
        credentials: await credentialsOf('customer'),
      }),
    );
    await expect((await customersAs(`127.0.0.1:${port}`, 'admin')).getCustomer(request)).resolves.toBeDefined();
    await expect((await customersAs(`127.0.0.1:${port}`, 'gateway')).getCustomer(request)).rejects.toMatchObject(
      forbidden,
    );
  });

  it('logs and counts who was refused', async () => {
    const metrics = createMetrics('customer');
    const warn = vi.spyOn(logger, 'warn');
    stack.defer(() => warn.mockRestore());
    const client = await customersAs(await serve(customerCallers, metrics), 'stranger');
    await expect(client.getCustomer(request)).rejects.toThrow(
      'The certificate of the caller (DNS:stranger) does not permit scheduling.customer.v1.CustomerService/GetCustomer.',
    );
    expect(warn).toHaveBeenCalledWith(
      { caller: 'DNS:stranger', method: '/scheduling.customer.v1.CustomerService/GetCustomer' },
      'refused a caller',
    );
    const labels = { rpc_method: 'GetCustomer', rpc_status: 'PERMISSION_DENIED' };
    expect(sumSamples(await metrics.metrics(), 'rpc_server_duration_seconds_count', labels)).toBe(1);
  });

  it('is not the health check, which everybody with a certificate may call', async () => {
    await expect(
      checkHealth('customer', await serve(), { credentials: await credentialsOf('stranger') }),
    ).resolves.toBe('SERVING');
  });
});
