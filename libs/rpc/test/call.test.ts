import { type Customer, CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { AppointmentServiceService } from '@scheduling/contracts/calendar/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import { currentActor, currentContext, FairQueue, QueueFull, runWithContext } from '@scheduling/runtime';
import { eventually, longTimeout, testLogger } from '@scheduling/testing';
import { once } from 'node:events';
import { constants, createServer } from 'node:http2';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createClient, type Handlers, type HostedService, hostService, type RpcClient } from '../src/index.ts';
import { type RpcServer, type RpcServerOptions, startRpcServer } from '../src/server.ts';
import { someCallers, someHandlers } from './some-methods.ts';

type CustomerHandlers = Handlers<typeof CustomerServiceService>;

const logger = testLogger('rpc-test');
const customer = (id: string): Customer => ({
  id,
  providerId: 'p',
  customerReference: 'c',
  providerReference: 'p',
  userName: 'Jörg',
  version: 1,
});
const request = { crmId: 'crm' };
const newCustomer = { crmId: 'crm', providerReference: 'p', customerReference: 'c', userName: 'Jörg' };
const unavailable = new DomainError('database.unavailable');
/** In plain text anybody may call. */
const callers = someCallers(CustomerServiceService);

describe('a call', () => {
  let stack: AsyncDisposableStack;
  beforeEach(() => {
    stack = new AsyncDisposableStack();
  });
  afterEach(() => stack.disposeAsync());

  async function connect(
    getCustomer: CustomerHandlers['getCustomer'],
    createCustomer?: CustomerHandlers['createCustomer'],
    ready?: RpcServerOptions['ready'],
  ) {
    const handlers = someHandlers(CustomerServiceService, { getCustomer, ...(createCustomer && { createCustomer }) });
    const server = stack.use(
      await startRpcServer({
        host: '127.0.0.1',
        port: 0,
        logger,
        services: [hostService(CustomerServiceService, callers, handlers)],
        ...(ready && { ready }),
      }),
    );
    return stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${server.port}`, longTimeout));
  }

  it('is not handled before its server is ready', async () => {
    // A read that is unavailable is repeated.
    const ready = vi.fn<() => Promise<void>>().mockRejectedValue(unavailable);
    const getCustomer = vi.fn<CustomerHandlers['getCustomer']>(() => Promise.resolve({ customer: customer('1') }));
    const client = await connect(getCustomer, undefined, ready);
    await expect(client.getCustomer(request)).rejects.toMatchObject({ code: unavailable.code });
    expect(getCustomer).not.toHaveBeenCalled();
    ready.mockResolvedValue();
    await expect(client.getCustomer(request)).resolves.toMatchObject({ customer: { id: '1' } });
  });

  it('carries the request id', async () => {
    const client = await connect(async () => ({ customer: customer(currentContext()!.requestId) }));
    const answer = await runWithContext({ requestId: 'request-1' }, () => client.getCustomer(request));
    expect(answer.customer).toEqual(customer('request-1'));
  });

  it('carries who caused it, on to the next service as well', async () => {
    const next = await connect(async () => ({ customer: customer(currentActor()) }));
    const client = await connect(() => next.getCustomer(request));
    const answer = await runWithContext({ requestId: 'request-1', actor: 'crm:sk_123456789' }, () =>
      client.getCustomer(request),
    );
    expect(answer.customer).toEqual(customer('crm:sk_123456789'));
    expect((await client.getCustomer(request)).customer).toEqual(customer('service'));
  });

  it('carries the idempotency key and a fingerprint of the request, but not on to the next service', async () => {
    const seen: [string | undefined, string | undefined][] = [];
    const remember = () =>
      seen.push([currentContext()?.idempotency?.key, currentContext()?.idempotency?.fingerprint.toString('hex')]);
    const next = await connect(async () => {
      remember();
      return {};
    });
    const client = await connect(
      async () => {
        remember();
        return {};
      },
      async () => {
        remember();
        await next.getCustomer(request);
        return { created: true };
      },
    );
    const withKey = (call: () => Promise<unknown>) => runWithContext({ requestId: 'r', idempotencyKey: 'key' }, call);
    await withKey(() => client.createCustomer(newCustomer));
    await withKey(() => client.createCustomer({ ...newCustomer }));
    await withKey(() => client.createCustomer({ ...newCustomer, note: 'other' }));
    await withKey(() => client.getCustomer(request));
    const [first, again, other, get] = seen.filter(([key]) => key === 'key').map(([, fingerprint]) => fingerprint);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(again).toBe(first);
    expect(new Set([first, other, get]).size).toBe(3);
    expect(seen.filter(([key]) => key === undefined)).toHaveLength(3);
  });

  it.each([
    { size: 'small', note: '' },
    { size: 'large', note: 'x'.repeat(2_000_000) },
  ])('tells its caller whether its response repeats an earlier one, also if it is $size', async ({ note }) => {
    const client = await connect(
      async () => ({}),
      async ({ userName }) => {
        if (userName === 'again') currentContext()!.idempotency!.isReplayed = true;
        return { created: true };
      },
    );
    const replays: string[] = [];
    const create = (userName: string) => {
      const context = { requestId: 'r', idempotencyKey: 'key', onReplay: () => void replays.push(userName) };
      return runWithContext(context, () => client.createCustomer({ ...newCustomer, userName, note }));
    };
    await Promise.all([create('first'), create('again')]);
    expect(replays).toEqual(['again']);
  });

  it.each([
    'invalid',
    'unauthenticated',
    'forbidden',
    'not_found',
    'conflict',
    'gone',
    'unprocessable',
    'limited',
    'unavailable',
  ] as const)('returns a domain error of category %s unchanged, even if its code is unknown here', async (category) => {
    const errors = [{ pointer: '/näme', detail: 'is empty' }];
    const client = await connect(() =>
      Promise.reject(
        new DomainError('customer.test' as ErrorCode, { category, text: 'Größe', errors, retryAfterSeconds: 7 }),
      ),
    );
    const failure = await client.getCustomer(request).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DomainError);
    expect(failure).toMatchObject({ category, code: 'customer.test', message: 'Größe', errors, retryAfterSeconds: 7 });
  });

  it('reveals nothing about an unexpected error', async () => {
    const client = await connect(() => Promise.reject(new Error('password=secret')));
    const failure = await client.getCustomer(request).catch((error: unknown) => error);
    expect(failure).not.toBeInstanceOf(DomainError);
    expect(String(failure)).not.toContain('secret');
  });

  it('ends with the deadline of its request', async () => {
    let calls = 0;
    const client = await connect(() => ((calls += 1) === 1 ? Promise.resolve({}) : new Promise(() => undefined)));
    await client.getCustomer(request);
    const startedMs = Date.now();
    const failing = runWithContext({ requestId: 'r', deadlineMs: startedMs + 100 }, () => client.getCustomer(request));
    await expect(failing).rejects.toMatchObject({ category: 'unavailable', code: 'service.unavailable' });
    // Without the request's deadline it would be the 30 s of this client.
    expect(Date.now() - startedMs).toBeLessThan(longTimeout.timeoutMs);
  });

  it('passes the remaining time on to the next service', async () => {
    const deadlines: (number | undefined)[] = [];
    const client = await connect(async () => {
      deadlines.push(currentContext()?.deadlineMs);
      return {};
    });
    await client.getCustomer(request);
    const startedMs = Date.now();
    await runWithContext({ requestId: 'r', deadlineMs: startedMs + 1_000 }, () => client.getCustomer(request));
    // Without the request's deadline it would be the 30 s of this client, from when the call arrives.
    expect(deadlines[1]).toBeLessThan(startedMs + longTimeout.timeoutMs);
  });

  it('is unavailable if its connection ends with an error, as when its server has seen too many cancelled calls', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    stack.defer(() => void server.close());
    server.on('stream', ({ session }) => session?.goaway(constants.NGHTTP2_INTERNAL_ERROR));
    server.on('sessionError', () => undefined);
    const client = stack.use(
      createClient(CustomerServiceService, 'customer', `127.0.0.1:${(server.address() as AddressInfo).port}`),
    );
    await expect(client.createCustomer(newCustomer)).rejects.toMatchObject({
      category: 'unavailable',
      code: 'service.unavailable',
    });
  });

  it('does not fail while its server restarts', async () => {
    const handlers = someHandlers(CustomerServiceService, {
      createCustomer: async () => ({ customer: customer('1'), created: true }),
    });
    const services = [hostService(CustomerServiceService, callers, handlers)];
    const first = await startRpcServer({ host: '127.0.0.1', port: 0, logger, services });
    const client = stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${first.port}`, longTimeout));
    await client.createCustomer(newCustomer);
    await first[Symbol.asyncDispose]();
    const answer = client.createCustomer(newCustomer);
    answer.catch(() => undefined);
    stack.use(await startRpcServer({ host: '127.0.0.1', port: first.port, logger, services }));
    await expect(answer).resolves.toMatchObject({ created: true });
  });

  it('fails fast when the server is down, and works again when it is back', async () => {
    const server = await startRpcServer({ host: '127.0.0.1', port: 0, logger, services: [] });
    const { port } = server;
    await server[Symbol.asyncDispose]();
    const client = stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${port}`));
    await expect(client.getCustomer(request)).rejects.toMatchObject({ code: 'service.unavailable' });

    const handlers = someHandlers(CustomerServiceService, { getCustomer: async () => ({ customer: customer('1') }) });
    stack.use(
      await startRpcServer({
        host: '127.0.0.1',
        port,
        logger,
        services: [hostService(CustomerServiceService, callers, handlers)],
      }),
    );
    await eventually(() => client.getCustomer(request));
  });

  it('does not fail when its connection reaches its maximum age', async () => {
    const handlers = someHandlers(CustomerServiceService, {
      createCustomer: async () => ({ customer: customer('1'), created: true }),
    });
    const services = [hostService(CustomerServiceService, callers, handlers)];
    const server = stack.use(
      await startRpcServer({ host: '127.0.0.1', port: 0, logger, services, maxConnectionAgeMs: 100 }),
    );
    const client = stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${server.port}`, longTimeout));
    const endMs = Date.now() + 1_500;
    const call = async (): Promise<void> => {
      while (Date.now() < endMs) await client.createCustomer(newCustomer);
    };
    await expect(Promise.all(Array.from({ length: 20 }, call))).resolves.toHaveLength(20);
  });

  const answering = {
    createCustomer: async () => ({ customer: customer('1'), created: true }),
    getCustomer: async () => ({ customer: customer('1') }),
  };
  const within = (ms: number, client: Pick<RpcClient<typeof CustomerServiceService>, 'createCustomer'>) =>
    runWithContext({ requestId: 'r', deadlineMs: Date.now() + ms }, () => client.createCustomer(newCustomer));

  async function startCustomer(): Promise<RpcServer> {
    const services = [hostService(CustomerServiceService, callers, someHandlers(CustomerServiceService, answering))];
    return stack.use(await startRpcServer({ host: '127.0.0.1', port: 0, logger, services }));
  }

  /** Another service, which does not know the methods of customer. */
  async function startOther(): Promise<RpcServer> {
    const services = [
      hostService(
        AppointmentServiceService,
        someCallers(AppointmentServiceService),
        someHandlers(AppointmentServiceService, {}),
      ),
    ];
    return stack.use(await startRpcServer({ host: '127.0.0.1', port: 0, logger, services }));
  }

  /** Leads new connections to `route.port`, or nowhere: they are established, and nothing else happens. */
  async function startNetwork(route: { port: number | undefined }) {
    const established: Socket[] = [];
    const network = createTcpServer((from) => {
      established.push(from.on('error', () => undefined));
      if (route.port === undefined) return;
      const to = connectTcp(route.port, '127.0.0.1');
      established.push(to.on('error', () => undefined));
      from.pipe(to).pipe(from);
    }).listen(0, '127.0.0.1');
    await once(network, 'listening');
    stack.defer(() => {
      for (const socket of established) socket.destroy();
      network.close();
    });
    const client = stack.use(
      createClient(CustomerServiceService, 'customer', `127.0.0.1:${(network.address() as AddressInfo).port}`),
    );
    return { client, established };
  }

  it('uses new connections after one was not answered because its connection is dead', async () => {
    const { client, established } = await startNetwork(await startCustomer());
    for (let count = 0; count < 8; count += 1) await client.createCustomer(newCustomer);
    // From now on, nothing arrives on what is established, and nobody is told.
    for (const socket of established) socket.unpipe().pause();
    await expect(within(600, client)).rejects.toMatchObject({ code: 'service.unavailable' });
    for (let count = 0; count < 8; count += 1) await within(longTimeout.timeoutMs, client);
  });

  it('uses new connections after a few seconds in which nobody has completed the present ones', async () => {
    const route: { port: number | undefined } = { port: undefined };
    const { client } = await startNetwork(route);
    await expect(within(200, client)).rejects.toMatchObject({ code: 'service.unavailable' });
    const startedMs = Date.now();
    route.port = (await startCustomer()).port;
    await eventually(() => within(1_000, client));
    // After 10 s a call would no longer wait for a connection, and after its 2 s replace it because it was not
    // answered.
    expect(Date.now() - startedMs).toBeLessThan(10_000);
  });

  it('is made elsewhere if one of the addresses belongs to another service', async () => {
    const [other, right] = [await startOther(), await startCustomer()];
    const client = stack.use(
      createClient(CustomerServiceService, 'customer', `ipv4:127.0.0.1:${other.port},127.0.0.1:${right.port}`),
    );
    const callTwice = () => Promise.all([client.createCustomer(newCustomer), client.getCustomer(request)]);
    for (let count = 0; count < 20; count += 1)
      await expect(callTwice()).resolves.toMatchObject([{ created: true }, { customer: { id: '1' } }]);
  });

  it('is unavailable while all addresses belong to another service, and uses new connections after a few seconds', async () => {
    const route: { port: number | undefined } = await startOther().then(({ port }) => ({ port }));
    const { client } = await startNetwork(route);
    await expect(within(2_000, client)).rejects.toMatchObject({ category: 'unavailable', code: 'service.unavailable' });
    route.port = (await startCustomer()).port;
    await eventually(() => within(2_000, client));
  });

  it('is finished before its server stops', async () => {
    const entered = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const handlers = someHandlers(CustomerServiceService, {
      getCustomer: async () => {
        entered.resolve();
        await release.promise;
        return { customer: customer('1') };
      },
    });
    const server = await startRpcServer({
      host: '127.0.0.1',
      port: 0,
      logger,
      services: [hostService(CustomerServiceService, callers, handlers)],
    });
    const client = stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${server.port}`, longTimeout));
    const answer = client.getCustomer(request);
    await entered.promise;
    const stopped = server[Symbol.asyncDispose]();
    release.resolve();
    await expect(answer).resolves.toMatchObject({ customer: { id: '1' } });
    await stopped;
  });
});

describe('a stream', () => {
  type ListHandler = Handlers<typeof AppointmentServiceService>['listAppointments'];

  async function connect(
    stack: AsyncDisposableStack,
    listAppointments: ListHandler,
    { turns, ready, ...options }: Pick<RpcServerOptions, 'turns' | 'ready'> & { timeoutMs?: number } = {},
  ) {
    const handlers = someHandlers(AppointmentServiceService, { listAppointments });
    const server = stack.use(
      await startRpcServer({
        host: '127.0.0.1',
        port: 0,
        logger,
        services: [hostService(AppointmentServiceService, someCallers(AppointmentServiceService), handlers)],
        ...(turns && { turns }),
        ...(ready && { ready }),
      }),
    );
    const address = `127.0.0.1:${server.port}`;
    return stack.use(createClient(AppointmentServiceService, 'calendar', address, { ...longTimeout, ...options }));
  }

  const list = { crmId: 'crm', providerReference: 'p', includeArchived: false };

  it('stops its server when the caller stops reading', async () => {
    await using stack = new AsyncDisposableStack();
    let sent = 0;
    const aborted = Promise.withResolvers<void>();
    const client = await connect(stack, async function* (_, signal) {
      signal.addEventListener('abort', () => aborted.resolve());
      for (;;) {
        sent += 1;
        yield { json: Buffer.alloc(0), nextCursor: 'x'.repeat(10_000) };
        await new Promise(setImmediate);
      }
    });
    let received = 0;
    for await (const _ of client.listAppointments(list)) {
      received += 1;
      if (received === 3) break;
    }
    await aborted.promise;
    // Backpressure: the transport's windows limit how much is sent but not read, whatever the speed of the caller.
    expect(sent).toBeLessThan(1_000);
  });

  it('is not begun before its server is ready', async () => {
    await using stack = new AsyncDisposableStack();
    const ready = vi.fn<() => Promise<void>>().mockRejectedValueOnce(unavailable);
    const listAppointments = vi.fn<ListHandler>(async function* () {
      yield { json: Buffer.alloc(0) };
    });
    const client = await connect(stack, listAppointments, { ready });
    const next = () => client.listAppointments(list)[Symbol.asyncIterator]().next();
    await expect(next()).rejects.toMatchObject({ code: unavailable.code });
    await expect(next()).resolves.toMatchObject({ value: { json: Buffer.alloc(0) } });
  });

  it('is cancelled if the next message does not arrive', async () => {
    await using stack = new AsyncDisposableStack();
    const oneMessage: ListHandler = async function* (_, signal) {
      yield { json: Buffer.alloc(0) };
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    };
    const client = await connect(stack, oneMessage, { timeoutMs: 3_000 });
    const messages = client.listAppointments(list)[Symbol.asyncIterator]();
    expect((await messages.next()).value).toMatchObject({ json: Buffer.alloc(0) });
    await expect(messages.next()).rejects.toMatchObject({ category: 'unavailable', code: 'service.unavailable' });
  });

  it('goes on after a pause, however old its connection has become', async () => {
    await using stack = new AsyncDisposableStack();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    stack.defer(() => void vi.useRealTimers());
    const goOn = Promise.withResolvers<void>();
    const client = await connect(stack, async function* () {
      yield { json: Buffer.alloc(0) };
      await goOn.promise;
      yield { json: Buffer.alloc(0), nextCursor: 'second' };
    });
    const messages = client.listAppointments(list)[Symbol.asyncIterator]();
    await messages.next();
    // After a minute the connection is closing. What is sent on it meanwhile, such as pings, arrives in the turns in
    // between.
    for (let seconds = 0; seconds < 180; seconds += 1) {
      vi.advanceTimersByTime(1_000);
      for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    }
    goOn.resolve();
    expect((await messages.next()).value).toMatchObject({ nextCursor: 'second' });
    expect(await messages.next()).toMatchObject({ done: true });
  });

  it('does not break off when its next message has to wait for other calls of the CRM', async () => {
    await using stack = new AsyncDisposableStack();
    const turns = new FairQueue({ capacity: 2, maxWaiting: 10, maxWaitMs: 20 });
    const other = Promise.withResolvers<Disposable>();
    const client = await connect(
      stack,
      async function* () {
        // Comes before the second message.
        turns.enter(list.crmId, 1, { patient: true }).then(other.resolve, other.reject);
        yield { json: Buffer.alloc(0) };
        yield { json: Buffer.alloc(0), nextCursor: 'second' };
      },
      { turns },
    );
    const messages = client.listAppointments(list)[Symbol.asyncIterator]();
    await messages.next();
    const turn = await other.promise;
    await expect(turns.enter(list.crmId, 1)).rejects.toThrow(QueueFull);
    turn[Symbol.dispose]();
    expect((await messages.next()).value).toMatchObject({ nextCursor: 'second' });
  });

  it('comes from elsewhere if one of the addresses belongs to another service', async () => {
    await using stack = new AsyncDisposableStack();
    const start = async (service: HostedService) =>
      stack.use(await startRpcServer({ host: '127.0.0.1', port: 0, logger, services: [service] }));
    const other = await start(hostService(CustomerServiceService, callers, someHandlers(CustomerServiceService, {})));
    const listAppointments = async function* () {
      yield { json: Buffer.alloc(0), nextCursor: 'last' };
    };
    const right = await start(
      hostService(
        AppointmentServiceService,
        someCallers(AppointmentServiceService),
        someHandlers(AppointmentServiceService, { listAppointments }),
      ),
    );
    const client = stack.use(
      createClient(AppointmentServiceService, 'calendar', `ipv4:127.0.0.1:${other.port},127.0.0.1:${right.port}`),
    );
    for (let count = 0; count < 10; count += 1)
      expect(await Array.fromAsync(client.listAppointments(list))).toMatchObject([{ nextCursor: 'last' }]);
  });

  it('rejects with the domain error of its server', async () => {
    await using stack = new AsyncDisposableStack();
    // oxlint-disable-next-line require-yield -- fails before its first message
    const client = await connect(stack, async function* () {
      throw new DomainError('provider.not_found', { text: 'There is none.' });
    });
    await expect(client.listAppointments(list)[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'provider.not_found',
    });
  });
});
