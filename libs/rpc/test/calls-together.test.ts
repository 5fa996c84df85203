import {
  Client,
  credentials,
  type handleBidiStreamingCall,
  Server,
  ServerCredentials,
  status as Status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { CustomerServiceService, type GetCustomerRequest } from '@scheduling/contracts/customer/v1';
import {
  type Answer,
  BatchServiceService,
  type Call,
  type MakeCallsRequest,
  type MakeCallsResponse,
} from '@scheduling/contracts/rpc/v1';
import { DomainError } from '@scheduling/errors';
import { currentContext, FairQueue, runWithContext } from '@scheduling/runtime';
import { eventually, longTimeout, testLogger } from '@scheduling/testing';
import { openLink } from '@scheduling/testing/link';
import { once } from 'node:events';
import { Transform } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createClient, type Handlers, hostService } from '../src/index.ts';
import { startRpcServer } from '../src/server.ts';
import { someCallers, someHandlers } from './some-methods.ts';

type GetCustomer = Handlers<typeof CustomerServiceService>['getCustomer'];

const logger = testLogger('calls-together-test');
const callers = someCallers(CustomerServiceService);
const idOf = ({ key }: GetCustomerRequest): string => (key?.$case === 'id' ? key.value : '');
const request = (id: number | string): GetCustomerRequest => ({
  crmId: 'crm',
  key: { $case: 'id', value: String(id) },
});
const newCustomer = { crmId: 'crm', providerReference: 'p', customerReference: 'c', userName: 'Jörg' };
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const customer = (id: string) => ({
  id,
  providerId: 'p',
  customerReference: 'c',
  providerReference: 'p',
  userName: 'Jörg',
  version: 1,
});

class CountingQueue extends FairQueue {
  entered = 0;

  override enter(...args: Parameters<FairQueue['enter']>): Promise<Disposable> {
    this.entered += 1;
    return super.enter(...args);
  }
}

/** A way for bytes that can be closed for a while. Nothing is lost meanwhile, and nothing comes in another order. */
function createGate() {
  let opened = Promise.resolve();
  let open = (): void => undefined;
  return {
    pass: () => new Transform({ transform: (chunk: Buffer, _, done) => void opened.then(() => done(null, chunk)) }),
    close: (): void => {
      ({ promise: opened, resolve: open } = Promise.withResolvers<void>());
    },
    open: (): void => open(),
  };
}

describe('calls that are made at the same moment', () => {
  let stack: AsyncDisposableStack;
  beforeEach(() => {
    stack = new AsyncDisposableStack();
  });
  afterEach(() => stack.disposeAsync());

  const clientOf = (port: number, options = longTimeout) =>
    stack.use(createClient(CustomerServiceService, 'customer', `127.0.0.1:${port}`, options));

  /** The server is disposed of by the caller. */
  function start(getCustomer: GetCustomer, turns?: FairQueue) {
    const handlers = someHandlers(CustomerServiceService, { getCustomer });
    const services = [hostService(CustomerServiceService, callers, handlers)];
    return startRpcServer({ host: '127.0.0.1', port: 0, logger, services, ...(turns && { turns }) });
  }

  const serve = async (getCustomer: GetCustomer, turns?: FairQueue): Promise<number> =>
    stack.use(await start(getCustomer, turns)).port;

  const connect = async (getCustomer: GetCustomer) => clientOf(await serve(getCustomer));

  /** A server with nothing else. */
  async function connectTo(definition: object, implementation: UntypedServiceImplementation, options = longTimeout) {
    const server = new Server();
    server.addService(definition as never, implementation);
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    stack.defer(() => server.forceShutdown());
    return { client: clientOf(port, options), server };
  }

  type ServeStream = handleBidiStreamingCall<MakeCallsRequest, MakeCallsResponse>;

  const message = (parts: Partial<MakeCallsResponse> = {}): MakeCallsResponse => ({
    answers: [],
    isClosing: false,
    nowMs: performance.now(),
    ...parts,
  });

  /** Accepts the stream, and answers every call with an empty response, but none from the one with this id on. */
  function echo(messages: Call[][], lastId = 'none'): ServeStream {
    return (stream) => {
      let isMute = false;
      stream.write(message());
      let index = 0;
      stream.on('data', ({ calls }: MakeCallsRequest) => {
        messages.push(calls);
        isMute ||= calls.some((call) => call.request.includes(lastId));
        if (isMute) return;
        const answers = calls.map((): Answer => ({
          index: index++,
          outcome: { $case: 'response', value: Buffer.alloc(0) },
          isReplay: false,
        }));
        stream.write(message({ answers }));
      });
      stream.on('end', () => stream.end());
    };
  }

  /** A stream, as a client opens it. */
  function openStream(port: number, received: MakeCallsResponse[]) {
    const raw = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    stack.defer(() => raw.close());
    const { makeCalls } = BatchServiceService;
    const stream = raw.makeBidiStreamRequest<MakeCallsRequest, MakeCallsResponse>(
      makeCalls.path,
      makeCalls.requestSerialize,
      makeCalls.responseDeserialize,
    );
    stream.on('data', (response: MakeCallsResponse) => received.push(response)).on('error', () => undefined);
    stack.defer(() => stream.cancel());
    return stream;
  }

  it('are sent at once, at most 16 of them', async () => {
    const messages: Call[][] = [];
    const { client } = await connectTo(BatchServiceService, { makeCalls: echo(messages) });
    await Promise.all(numbers(34).map((id) => client.getCustomer(request(id))));
    expect(messages.map((calls) => calls.length)).toEqual([16, 16, 2]);
  });

  it('are sent in several messages if they would be too large for one', async () => {
    const messages: Call[][] = [];
    const { client } = await connectTo(BatchServiceService, { makeCalls: echo(messages) });
    const lengths = [...numbers(6).map(() => 400_000), 2_000_000, 1];
    await Promise.all(lengths.map((length) => client.getCustomer(request('x'.repeat(length)))));
    expect(messages.map((calls) => calls.length)).toEqual([2, 2, 2, 1, 1]);
  });

  it('do not fail because one among them is larger than a server accepts', async () => {
    const client = await connect(async (call) => ({ customer: customer(String(idOf(call).length)) }));
    const sizes = [1, 4_100_000, 4_200_000];
    const settled = await Promise.allSettled(sizes.map((size) => client.getCustomer(request('x'.repeat(size)))));
    expect(settled).toMatchObject([
      { status: 'fulfilled', value: { customer: { id: '1' } } },
      { status: 'fulfilled', value: { customer: { id: '4100000' } } },
      { status: 'rejected', reason: { code: 'service.unavailable' } },
    ]);
  });

  it('use few streams, each until the server asks to close it', async () => {
    const opened: Call[][][] = [];
    const ended: unknown[] = [];
    const close: (() => void)[] = [];
    const makeCalls: ServeStream = (stream) => {
      const messages: Call[][] = [];
      opened.push(messages);
      echo(messages)(stream);
      close.push(() => stream.write(message({ isClosing: true })));
      stream.once('end', () => ended.push(messages));
    };
    const { client } = await connectTo(BatchServiceService, { makeCalls });
    for (const id of numbers(40)) await client.getCustomer(request(id));
    expect(opened).toHaveLength(4);
    expect(opened.flat()).toHaveLength(40);
    for (const messages of opened) expect(messages.length).toBeGreaterThan(5);
    expect(ended).toEqual([]);
    for (const each of close) each();
    await eventually(() => expect(ended).toHaveLength(4));
    await client.getCustomer(request(40));
    expect(opened).toHaveLength(5);
    client[Symbol.dispose]();
    await eventually(() => expect(ended).toHaveLength(5));
  });

  it('use another stream after 10 seconds at most, which may be served by a new replica', async () => {
    const port = await serve(async () => ({}));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    stack.defer(() => void vi.useRealTimers());
    const received: MakeCallsResponse[] = [];
    const stream = openStream(port, received);
    await vi.waitUntil(() => received.length === 1, { timeout: longTimeout.timeoutMs });
    vi.advanceTimersByTime(10_000);
    await vi.waitUntil(() => received.length === 2, { timeout: longTimeout.timeoutMs });
    expect(received.map(({ isClosing }) => isClosing)).toEqual([false, true]);
    const ended = once(stream, 'end');
    stream.end();
    await ended;
  });

  it('avoid a stream on which one was not answered in time', async () => {
    const cancelled = Promise.withResolvers<void>();
    const messages: Call[][] = [];
    const makeCalls: ServeStream = (stream) => {
      echo(messages, 'late')(stream);
      stream.once('cancelled', cancelled.resolve);
    };
    const { client } = await connectTo(BatchServiceService, { makeCalls });
    for (const id of numbers(8)) await client.getCustomer(request(id));
    // A client that stands still for 100 ms gives the call up before it has sent it.
    await eventually(async () => {
      const late = runWithContext({ requestId: 'r', deadlineMs: Date.now() + 100 }, () =>
        client.getCustomer(request('late')),
      );
      await expect(late).rejects.toMatchObject({ code: 'service.unavailable' });
      expect(messages.flat().some((call) => call.request.includes('late'))).toBe(true);
    });
    for (const id of numbers(8)) await client.getCustomer(request(id));
    await cancelled.promise;
  });

  it('are all answered while a replica stops, and then by another one', async () => {
    const startNamed = (name: string) => start(async () => ({ customer: customer(name) }));
    const [one, other] = [await startNamed('one'), stack.use(await startNamed('other'))];
    const client = stack.use(
      createClient(CustomerServiceService, 'customer', `ipv4:127.0.0.1:${one.port},127.0.0.1:${other.port}`),
    );
    const seen: string[] = [];
    const call = async () => seen.push((await client.getCustomer(request(1))).customer!.id);
    await eventually(async () => {
      await call();
      expect(new Set(seen)).toEqual(new Set(['one', 'other']));
    });
    const stopped = one[Symbol.asyncDispose]().then(() => 'stopped');
    const callUntilStopped = async (): Promise<void> => {
      const first = await Promise.race([stopped, Promise.all([call(), call(), call()])]);
      if (first !== 'stopped') await callUntilStopped();
    };
    await callUntilStopped();
    seen.length = 0;
    for (const _ of numbers(8)) await call();
    expect(new Set(seen)).toEqual(new Set(['other']));
  });

  it('leave nothing open that a server would have to wait for when it stops', async () => {
    const server = await start(async () => ({}));
    const client = clientOf(server.port);
    await Promise.all(numbers(20).map((id) => client.getCustomer(request(id))));
    const startedMs = performance.now();
    await server[Symbol.asyncDispose]();
    // It would cut off what is in progress after 8 s.
    expect(performance.now() - startedMs).toBeLessThan(4_000);
  });

  it('have each its own request id, idempotency key and deadline', async () => {
    const client = await connect(async () => {
      const { requestId, idempotency, deadlineMs } = currentContext()!;
      return {
        customer: { ...customer(requestId), customerReference: idempotency!.key, version: deadlineMs! - Date.now() },
      };
    });
    const answers = await Promise.all(
      [5_000, 15_000].map((remainingMs) =>
        runWithContext(
          { requestId: `r-${remainingMs}`, idempotencyKey: `k-${remainingMs}`, deadlineMs: Date.now() + remainingMs },
          () => client.getCustomer(request(1)),
        ),
      ),
    );
    expect(answers.map(({ customer: found }) => [found!.id, found!.customerReference])).toEqual([
      ['r-5000', 'k-5000'],
      ['r-15000', 'k-15000'],
    ]);
    expect(answers[0]!.customer!.version).toBeLessThanOrEqual(5_000);
    expect(answers[1]!.customer!.version).toBeGreaterThan(5_000);
  });

  it('do not wait for each other, and one that is rejected does not concern the others', async () => {
    const held = Promise.withResolvers<void>();
    const client = await connect(async (call) => {
      const id = idOf(call);
      if (id === '0') await held.promise;
      if (id === '1')
        throw new DomainError('customer.not_found', {
          text: 'There is none.',
          errors: [{ pointer: '/x', detail: 'y' }],
        });
      if (id === '2') throw new Error('password=secret');
      return { customer: customer(id) };
    });
    const calls = numbers(5).map((id) => client.getCustomer(request(id)).then((answer) => answer.customer!.id));
    const settled = await Promise.allSettled(calls.slice(1));
    expect(settled[0]).toMatchObject({
      reason: { code: 'customer.not_found', message: 'There is none.', errors: [{ pointer: '/x', detail: 'y' }] },
    });
    expect(settled[1]).toMatchObject({ status: 'rejected' });
    expect(String((settled[1] as PromiseRejectedResult).reason)).not.toContain('secret');
    expect(settled.slice(2)).toEqual([
      { status: 'fulfilled', value: '3' },
      { status: 'fulfilled', value: '4' },
    ]);
    held.resolve();
    await expect(calls[0]).resolves.toBe('0');
  });

  it('end each with its own deadline', async () => {
    const client = await connect((call) =>
      idOf(call) === 'hanging' ? new Promise(() => undefined) : Promise.resolve({ customer: customer(idOf(call)) }),
    );
    const startedMs = Date.now();
    const hanging = runWithContext({ requestId: 'r', deadlineMs: startedMs + 100 }, () =>
      client.getCustomer(request('hanging')),
    );
    const other = client.getCustomer(request('other'));
    await expect(hanging).rejects.toMatchObject({ code: 'service.unavailable' });
    // Without its own deadline it would be the 30 s of this client.
    expect(Date.now() - startedMs).toBeLessThan(longTimeout.timeoutMs);
    await expect(other).resolves.toMatchObject({ customer: { id: 'other' } });
  });

  it('are not begun if they reach the server after their deadline, while others of the stream are', async () => {
    const begun: string[] = [];
    const port = await serve(async (call) => {
      begun.push(idOf(call));
      return { customer: customer(idOf(call)) };
    });
    const way = createGate();
    const link = stack.use(await openLink(() => [port], way.pass));
    const client = clientOf(link.port);
    // Each stream is accepted.
    for (const id of numbers(4)) await client.getCustomer(request(id));
    way.close();
    const call = (id: string, remainingMs: number) =>
      runWithContext({ requestId: id, deadlineMs: Date.now() + remainingMs }, () => client.getCustomer(request(id)));
    const [late, inTime] = [call('late', 200), call('in time', longTimeout.timeoutMs)];
    await expect(late).rejects.toMatchObject({ code: 'service.unavailable' });
    way.open();
    await expect(inTime).resolves.toMatchObject({ customer: { id: 'in time' } });
    expect(begun).toEqual(['0', '1', '2', '3', 'in time']);
  });

  it('are answered on connections that were replaced because another one was not', async () => {
    const [entered, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const client = await connect(async (call) => {
      if (idOf(call) === 'hanging') return new Promise(() => undefined);
      if (idOf(call) === 'slow') {
        entered.resolve();
        await release.promise;
      }
      return { customer: customer(idOf(call)) };
    });
    const slow = client.getCustomer(request('slow'));
    await entered.promise;
    const hanging = runWithContext({ requestId: 'r', deadlineMs: Date.now() + 600 }, () =>
      client.getCustomer(request('hanging')),
    );
    await expect(hanging).rejects.toMatchObject({ code: 'service.unavailable' });
    await expect(client.getCustomer(request('other'))).resolves.toMatchObject({ customer: { id: 'other' } });
    release.resolve();
    await expect(slow).resolves.toMatchObject({ customer: { id: 'slow' } });
  });

  it.each([
    ['its deadline passes', { timeoutMs: 100, disconnects: false }],
    ['its caller disconnects', { timeoutMs: 60_000, disconnects: true }],
  ])('wait for a turn no longer than until %s', async (_, { timeoutMs, disconnects }) => {
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // One call may be in progress, and one may wait.
    const turns = new CountingQueue({ capacity: 1, maxWaiting: 1, maxWaitMs: 60_000 });
    const getCustomer = async () => {
      begun.resolve();
      await held.promise;
      return {};
    };
    const port = await serve(getCustomer, turns);
    const client = clientOf(port);
    const first = client.getCustomer(request('first'));
    await begun.promise;

    const received: MakeCallsResponse[] = [];
    const stream = openStream(port, received);
    await eventually(() => expect(received).toHaveLength(1));
    const { path, requestSerialize } = CustomerServiceService.getCustomer;
    const waiting = { path, request: requestSerialize(request('waiting')), metadata: {} };
    const answers = () => received.flatMap((message) => message.answers);
    let sent = 0;
    await eventually(() => {
      // Again, if it has come too late to wait at all.
      if (answers().length === sent) {
        stream.write({ calls: [{ ...waiting, deadlineMs: performance.now() + timeoutMs }] });
        sent += 1;
      }
      expect(turns.entered).toBe(2);
    });
    if (disconnects) stream.cancel();
    else
      await eventually(() =>
        expect(answers().slice(sent - 1)).toMatchObject([
          { outcome: { $case: 'rejection', value: { code: Status.DEADLINE_EXCEEDED } } },
        ]),
      );
    // There is room in the queue again.
    await eventually(() =>
      expect(turns.enter('crm', 1, { signal: AbortSignal.timeout(10) })).rejects.toThrow('timeout'),
    );
    held.resolve();
    await expect(first).resolves.toEqual({});
  });

  it('are unavailable if the connection ends before they are answered', async () => {
    const { client, server } = await connectTo(BatchServiceService, { makeCalls: () => server.forceShutdown() });
    const settled = await Promise.allSettled(numbers(3).map((id) => client.getCustomer(request(id))));
    expect(settled.map((each) => each.status === 'rejected' && (each.reason as DomainError).code)).toEqual(
      Array.from({ length: 3 }, () => 'service.unavailable'),
    );
  });

  it('are unavailable if the server ends its answer without them', async () => {
    const makeCalls: ServeStream = (stream) => stream.end();
    const { client } = await connectTo(BatchServiceService, { makeCalls }, { timeoutMs: 3_000 });
    const settled = await Promise.allSettled(numbers(3).map((id) => client.getCustomer(request(id))));
    expect(settled.map((each) => each.status === 'rejected' && (each.reason as DomainError).code)).toEqual(
      Array.from({ length: 3 }, () => 'service.unavailable'),
    );
  });

  it('are made on another stream if the server has not accepted theirs, and are not sent before', async () => {
    const received: Call[][][] = [];
    const makeCalls: ServeStream = (stream) => {
      const messages: Call[][] = [];
      received.push(messages);
      if (received.length > 6) return echo(messages)(stream);
      stream.on('data', ({ calls }: MakeCallsRequest) => messages.push(calls));
      stream.emit('error', { code: Status.INTERNAL, details: 'closing' });
    };
    const { client } = await connectTo(BatchServiceService, { makeCalls });
    await expect(client.createCustomer(newCustomer)).rejects.toMatchObject({ code: 'service.unavailable' });
    expect(received).toEqual([[], [], [], []]);
    await Promise.all(numbers(3).map(() => client.createCustomer(newCustomer)));
    // A second stream may be opened while the seventh is not accepted yet.
    expect(received.slice(0, 6)).toEqual([[], [], [], [], [], []]);
    expect(received.flat(2)).toHaveLength(3);
  });

  it('are made once if the stream ends after the server has accepted it, unless they only read', async () => {
    const received: Call[][] = [];
    const makeCalls: ServeStream = (stream) => {
      stream.write(message());
      stream.on('data', ({ calls }: MakeCallsRequest) => {
        received.push(calls);
        stream.emit('error', { code: Status.INTERNAL, details: 'closing' });
      });
    };
    const { client } = await connectTo(BatchServiceService, { makeCalls });
    await expect(client.createCustomer(newCustomer)).rejects.toMatchObject({ code: 'service.unavailable' });
    expect(received).toHaveLength(1);
    await expect(client.getCustomer(request(1))).rejects.toMatchObject({ code: 'service.unavailable' });
    expect(received).toHaveLength(3);
  });

  it('do not fail because one among them is malformed, or unknown to the server', async () => {
    const broken = { ...CustomerServiceService.getCustomer, requestSerialize: () => Buffer.from([0xff]) };
    const unknown = { ...CustomerServiceService.getCustomer, path: '/scheduling.customer.v1.CustomerService/Unknown' };
    const port = await serve(async (call) => ({ customer: customer(idOf(call)) }));
    const client = stack.use(
      createClient({ whole: CustomerServiceService.getCustomer, broken, unknown }, 'customer', `127.0.0.1:${port}`),
    );
    const settled = await Promise.allSettled([
      client.broken(request(0)),
      client.unknown(request(1)),
      client.whole(request(2)),
    ]);
    expect(settled).toMatchObject([
      { status: 'rejected' },
      { status: 'rejected', reason: { code: 'service.unavailable' } },
      { status: 'fulfilled', value: { customer: { id: '2' } } },
    ]);
  });
});
