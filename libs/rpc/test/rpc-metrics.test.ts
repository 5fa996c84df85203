import { AppointmentServiceService } from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { DomainError } from '@scheduling/errors';
import { createMetrics } from '@scheduling/runtime';
import { eventually, sumSamples, testLogger } from '@scheduling/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClient, type Handlers, hostService } from '../src/index.ts';
import { startRpcServer } from '../src/server.ts';
import { someCallers, someHandlers } from './some-methods.ts';

const logger = testLogger('rpc-metrics-test');
const request = { crmId: 'crm' };
/** In plain text anybody may call. */
const callers = someCallers(CustomerServiceService);

describe('the metrics of calls', () => {
  let stack: AsyncDisposableStack;
  let metrics: ReturnType<typeof createMetrics>;
  beforeEach(() => {
    stack = new AsyncDisposableStack();
    metrics = createMetrics('test');
  });
  afterEach(() => stack.disposeAsync());

  const count = async (side: 'server' | 'client', labels: Record<string, string>): Promise<number | undefined> =>
    sumSamples(await metrics.metrics(), `rpc_${side}_duration_seconds_count`, labels);

  async function connect(getCustomer: Handlers<typeof CustomerServiceService>['getCustomer']) {
    const handlers = someHandlers(CustomerServiceService, { getCustomer });
    const services = [hostService(CustomerServiceService, callers, handlers)];
    const server = stack.use(await startRpcServer({ host: '127.0.0.1', port: 0, logger, services, metrics }));
    return stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${server.port}`, { metrics }));
  }

  it('count each call by its service, method and status, on both sides', async () => {
    const client = await connect(async () => ({}));
    for (let calls = 0; calls < 10; calls += 1) await client.getCustomer(request);
    const labels = {
      rpc_service: 'scheduling.customer.v1.CustomerService',
      rpc_method: 'GetCustomer',
      rpc_status: 'OK',
    };
    expect([await count('server', labels), await count('client', labels)]).toEqual([10, 10]);
    // The end of its HTTP/2 stream is not a second outcome of a call.
    expect([await count('server', {}), await count('client', {})]).toEqual([10, 10]);
  });

  it('count a rejection by its status', async () => {
    const client = await connect(() => Promise.reject(new DomainError('customer.not_found')));
    await expect(client.getCustomer(request)).rejects.toThrow('no');
    const labels = { rpc_status: 'NOT_FOUND' };
    expect([await count('server', labels), await count('client', labels)]).toEqual([1, 1]);
  });

  it('count a call that timed out, once', async () => {
    const client = await connect(() => new Promise(() => undefined));
    await expect(client.getCustomer(request)).rejects.toThrow('does not answer');
    expect(await count('client', { rpc_status: 'DEADLINE_EXCEEDED' })).toBe(1);
    await eventually(async () => expect(await count('server', { rpc_status: 'CANCELLED' })).toBe(1));
    expect([await count('client', {}), await count('server', {})]).toEqual([1, 1]);
  });

  it('count a server that does not answer', async () => {
    const server = await startRpcServer({ host: '127.0.0.1', port: 0, logger, services: [] });
    await server[Symbol.asyncDispose]();
    const client = stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${server.port}`, { metrics }));
    await expect(
      client.createCustomer({ crmId: 'crm', providerReference: 'p', customerReference: 'c', userName: 'n' }),
    ).rejects.toThrow('does not answer');
    expect(await count('client', { rpc_method: 'CreateCustomer', rpc_status: 'UNAVAILABLE' })).toBe(1);
  });

  it('count a stream that was read to its end, and one that its reader cancelled', async () => {
    const handlers = someHandlers(AppointmentServiceService, {
      listAppointments: async function* ({ limit = Number.POSITIVE_INFINITY }) {
        for (let sent = 0; sent < limit; sent += 1) {
          yield { json: Buffer.alloc(0) };
          await new Promise(setImmediate);
        }
      },
    });
    const server = stack.use(
      await startRpcServer({
        host: '127.0.0.1',
        port: 0,
        logger,
        services: [hostService(AppointmentServiceService, someCallers(AppointmentServiceService), handlers)],
        metrics,
      }),
    );
    const client = stack.use(
      createClient(AppointmentServiceService, 'calendar', `127.0.0.1:${server.port}`, { metrics }),
    );
    const list = { crmId: 'crm', providerReference: 'p', includeArchived: false };
    for await (const message of client.listAppointments({ ...list, limit: 3 })) expect(message.json).toHaveLength(0);
    for await (const message of client.listAppointments(list)) {
      expect(message.json).toHaveLength(0);
      break;
    }
    const of = { rpc_method: 'ListAppointments' };
    await eventually(async () => {
      expect([
        await count('server', { ...of, rpc_status: 'OK' }),
        await count('server', { ...of, rpc_status: 'CANCELLED' }),
      ]).toEqual([1, 1]);
      expect([
        await count('client', { ...of, rpc_status: 'OK' }),
        await count('client', { ...of, rpc_status: 'CANCELLED' }),
      ]).toEqual([1, 1]);
    });
  });
});
