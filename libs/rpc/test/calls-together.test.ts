import { type handleServerStreamingCall, Server, ServerCredentials, status as Status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { CustomerServiceService, type GetCustomerRequest } from '@scheduling/contracts/customer/v1';
import { type Answer, BatchServiceService, type Call, type CallAllRequest, type CallAllResponse } from '@scheduling/contracts/rpc/v1';
import { DomainError } from '@scheduling/errors';
import { currentContext, runWithContext } from '@scheduling/runtime';
import { testLogger } from '@scheduling/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClient, type Handlers, hostService, startRpcServer } from '../src/index.ts';

type GetCustomer = Handlers<typeof CustomerServiceService>['getCustomer'];

const logger = testLogger('calls-together-test');
const unused = () => Promise.reject(new Error('not called in this test'));
const callers = { getCustomer: [], createCustomer: [], updateCustomer: [], deleteCustomer: [] };
const idOf = ({ key }: GetCustomerRequest): string => (key?.$case === 'id' ? key.value : '');
const request = (id: number | string): GetCustomerRequest => ({ crmId: 'crm', key: { $case: 'id', value: String(id) } });
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const customer = (id: string) => ({ id, providerId: 'p', customerReference: 'c', providerReference: 'p', userName: 'Jörg', version: 1 });

describe('calls that are made at the same moment', () => {
  let stack: AsyncDisposableStack;
  beforeEach(() => {
    stack = new AsyncDisposableStack();
  });
  afterEach(() => stack.disposeAsync());

  const clientOf = (port: number) => stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${port}`));

  async function connect(getCustomer: GetCustomer) {
    const handlers = { getCustomer, createCustomer: unused, updateCustomer: unused, deleteCustomer: unused };
    const services = [hostService(CustomerServiceService, callers, handlers)];
    const server = stack.use(await startRpcServer({ host: '127.0.0.1', port: 0, logger, services }));
    return clientOf(server.port);
  }

  /** A server with nothing else. */
  async function connectTo(definition: object, implementation: UntypedServiceImplementation) {
    const server = new Server();
    server.addService(definition as never, implementation);
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    stack.defer(() => server.forceShutdown());
    return { client: clientOf(port), server };
  }

  /** Answers every call with an empty response. */
  function echo(batches: Call[][]): handleServerStreamingCall<CallAllRequest, CallAllResponse> {
    return (stream) => {
      batches.push(stream.request.calls);
      const answers = stream.request.calls.map((_, index): Answer => ({ index, outcome: { $case: 'response', value: Buffer.alloc(0) } }));
      stream.write({ answers });
      stream.end();
    };
  }

  it('are sent as one, at most 16 of them', async () => {
    const batches: Call[][] = [];
    const { client } = await connectTo(BatchServiceService, { callAll: echo(batches) });
    await Promise.all(numbers(34).map((id) => client.getCustomer(request(id))));
    expect(batches.map((calls) => calls.length)).toEqual([16, 16, 2]);
  });

  it('are sent as several if they would be too large for one', async () => {
    const batches: Call[][] = [];
    const { client } = await connectTo(BatchServiceService, { callAll: echo(batches) });
    await Promise.all(numbers(6).map(() => client.getCustomer(request('x'.repeat(400_000)))));
    expect(batches.map((calls) => calls.length)).toEqual([2, 2, 2]);
  });

  it('have each its own request id, idempotency key and deadline', async () => {
    const client = await connect(async () => {
      const { requestId, idempotency, deadlineMs } = currentContext()!;
      return { customer: { ...customer(requestId), customerReference: idempotency!.key, version: deadlineMs! - Date.now() } };
    });
    const answers = await Promise.all(
      [500, 1_500].map((remainingMs) =>
        runWithContext({ requestId: `r-${remainingMs}`, idempotencyKey: `k-${remainingMs}`, deadlineMs: Date.now() + remainingMs }, () => client.getCustomer(request(1))),
      ),
    );
    expect(answers.map(({ customer: found }) => [found!.id, found!.customerReference])).toEqual([['r-500', 'k-500'], ['r-1500', 'k-1500']]);
    expect(answers[0]!.customer!.version).toBeLessThanOrEqual(500);
    expect(answers[1]!.customer!.version).toBeGreaterThan(500);
  });

  it('do not wait for each other, and one that is rejected does not concern the others', async () => {
    const held = Promise.withResolvers<void>();
    const client = await connect(async (call) => {
      const id = idOf(call);
      if (id === '0') await held.promise;
      if (id === '1') throw new DomainError('customer.not_found', { text: 'There is none.', errors: [{ pointer: '/x', detail: 'y' }] });
      if (id === '2') throw new Error('password=secret');
      return { customer: customer(id) };
    });
    const calls = numbers(5).map((id) => client.getCustomer(request(id)).then((answer) => answer.customer!.id));
    const settled = await Promise.allSettled(calls.slice(1));
    expect(settled[0]).toMatchObject({ reason: { code: 'customer.not_found', message: 'There is none.', errors: [{ pointer: '/x', detail: 'y' }] } });
    expect(settled[1]).toMatchObject({ status: 'rejected' });
    expect(String((settled[1] as PromiseRejectedResult).reason)).not.toContain('secret');
    expect(settled.slice(2)).toEqual([{ status: 'fulfilled', value: '3' }, { status: 'fulfilled', value: '4' }]);
    held.resolve();
    await expect(calls[0]).resolves.toBe('0');
  });

  it('end each with its own deadline', async () => {
    const client = await connect((call) => (idOf(call) === 'hanging' ? new Promise(() => undefined) : Promise.resolve({ customer: customer(idOf(call)) })));
    const startedMs = Date.now();
    const hanging = runWithContext({ requestId: 'r', deadlineMs: startedMs + 100 }, () => client.getCustomer(request('hanging')));
    const other = client.getCustomer(request('other'));
    await expect(hanging).rejects.toMatchObject({ code: 'service.unavailable' });
    // Without its own deadline it would be the 2 s of a call.
    expect(Date.now() - startedMs).toBeLessThan(1_900);
    await expect(other).resolves.toMatchObject({ customer: { id: 'other' } });
  });

  it('are unavailable if the connection ends before they are answered', async () => {
    const { client, server } = await connectTo(BatchServiceService, { callAll: () => server.forceShutdown() });
    const settled = await Promise.allSettled(numbers(3).map((id) => client.getCustomer(request(id))));
    expect(settled.map((each) => each.status === 'rejected' && (each.reason as DomainError).code)).toEqual(Array.from({ length: 3 }, () => 'service.unavailable'));
  });

  it('are unavailable if the server ends its answer without them', async () => {
    const callAll: handleServerStreamingCall<CallAllRequest, CallAllResponse> = (stream) => stream.end();
    const { client } = await connectTo(BatchServiceService, { callAll });
    const settled = await Promise.allSettled(numbers(3).map((id) => client.getCustomer(request(id))));
    expect(settled.map((each) => each.status === 'rejected' && (each.reason as DomainError).code)).toEqual(Array.from({ length: 3 }, () => 'service.unavailable'));
  });

  it('are made one by one if the server is of a version that does not know this', async () => {
    const { client } = await connectTo(CustomerServiceService, {
      getCustomer: (call: { request: GetCustomerRequest }, done: (error: null, answer: object) => void) => done(null, { customer: customer(idOf(call.request)) }),
      createCustomer: () => undefined,
      updateCustomer: () => undefined,
      deleteCustomer: () => undefined,
    });
    const answers = await Promise.all(numbers(3).map((id) => client.getCustomer(request(id))));
    expect(answers.map((answer) => answer.customer!.id)).toEqual(['0', '1', '2']);
  });

  it('do not fail because one among them is malformed, or unknown to the server', async () => {
    const broken = { ...CustomerServiceService.getCustomer, requestSerialize: () => Buffer.from([0xff]) };
    const unknown = { ...CustomerServiceService.getCustomer, path: '/scheduling.customer.v1.CustomerService/Unknown' };
    const services = [hostService(CustomerServiceService, callers, { getCustomer: async (call) => ({ customer: customer(idOf(call)) }), createCustomer: unused, updateCustomer: unused, deleteCustomer: unused })];
    const server = stack.use(await startRpcServer({ host: '127.0.0.1', port: 0, logger, services }));
    const client = stack.use(createClient({ whole: CustomerServiceService.getCustomer, broken, unknown }, 'customer', `127.0.0.1:${server.port}`));
    const settled = await Promise.allSettled([client.broken(request(0)), client.unknown(request(1)), client.whole(request(2))]);
    expect(settled).toMatchObject([{ status: 'rejected' }, { status: 'rejected', reason: { code: Status.UNIMPLEMENTED } }, { status: 'fulfilled', value: { customer: { id: '2' } } }]);
  });
});
