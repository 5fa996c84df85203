import { DomainError } from '@scheduling/errors';
import { connectBroker, events, streamSettings } from '@scheduling/events';
import { createDatabase, type Database, migrateDatabase } from '@scheduling/postgres';
import { runWithContext } from '@scheduling/runtime';
import {
  createTestDatabase,
  eventually,
  longTimeout,
  startTestNats,
  testLogger,
  type TestNats,
} from '@scheduling/testing';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  appendEvent,
  type MessagingSchema,
  messagingMigrations,
  startConsumers,
  startRelay,
  subscription,
} from '../src/index.ts';
import { startProxy } from './nats-proxy.ts';
import { changedCustomer } from './changed-customer.ts';

const logger = testLogger('messaging-test');
const anHour = 3_600_000;
describe('an event', () => {
  let stack: AsyncDisposableStack;
  let nats: TestNats;
  let database: Database<MessagingSchema>;
  let databaseUrl: string;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    nats = stack.use(await startTestNats());
    databaseUrl = await createTestDatabase();
    await migrateDatabase({ url: databaseUrl, sets: [messagingMigrations], logger });
    database = stack.use(
      createDatabase<MessagingSchema>({ url: databaseUrl, applicationName: 'test', logger, ...longTimeout }),
    );
  });
  afterEach(() => stack.disposeAsync());

  /** A connection with the permissions of a service, or of a test. */
  const broker = (user: 'customer' | 'calendar' | 'test' = 'test', url = nats.url(user)) =>
    stack.use(connectBroker({ url, name: user, logger }));
  const relay = () => stack.use(startRelay({ service: 'customer', database, broker: broker('customer'), logger }));
  const append = (...versions: number[]) =>
    database.transaction((tx) =>
      appendEvent(tx, events.customerChanged, ...versions.map((version) => changedCustomer(version))),
    );

  const unsent = () => database.kysely.selectFrom('outbox').where('sentAt', 'is', null).selectAll().execute();
  const deadLetters = () => database.kysely.selectFrom('deadLetter').selectAll().execute();

  /** Starts a relay, and waits until it is the active one and has nothing to do. */
  async function activeRelay(pollMs: number): Promise<void> {
    // Before the start, so that its commit does not wake the relay a second time.
    await append(1);
    stack.use(startRelay({ service: 'customer', database, broker: broker('customer'), logger, pollMs }));
    await eventually(async () => expect(await unsent()).toEqual([]));
  }

  /** Consumes with the given handler, and collects the versions whose effect was committed. */
  function consumer(
    handle: (version: number) => void,
    committed: number[] = [],
    url = nats.url('calendar'),
    fetchMs = 1_000,
  ): AsyncDisposable {
    return stack.use(
      startConsumers<MessagingSchema>({
        service: 'calendar',
        database,
        broker: broker('calendar', url),
        logger,
        maxAttempts: 3,
        fetchMs,
        subscriptions: [
          subscription(events.customerChanged, async ({ version }) => {
            handle(version);
            return async () => {
              committed.push(version);
            };
          }),
        ],
      }),
    );
  }

  /** Consumes with the given handler and returns the versions whose effect was committed. */
  function consume(handle: (version: number) => void = () => undefined, url?: string, fetchMs?: number): number[] {
    const committed: number[] = [];
    consumer(handle, committed, url, fetchMs);
    return committed;
  }

  it('reaches a consumer once, after its commit', async () => {
    relay();
    const committed = consume();
    await append(1, 2, 3);
    await eventually(() => expect(committed.toSorted((a, b) => a - b)).toEqual([1, 2, 3]));
    // The relay records what it sent after the answer of NATS, and a consumer may be faster.
    await eventually(async () => expect(await unsent()).toEqual([]));
  });

  it('is not published when its transaction is rolled back', async () => {
    relay();
    const committed = consume();
    const failing = database.transaction(async (tx) => {
      await appendEvent(tx, events.customerChanged, changedCustomer(1));
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    await append(2);
    await eventually(() => expect(committed).toEqual([2]));
  });

  it('does not wait behind one that NATS rejects', async () => {
    const versions = Array.from({ length: 60 }, (_, index) => index);
    await append(...versions);
    await sql`UPDATE outbox SET data = jsonb_build_object('actor', repeat('x', 2000000)) WHERE id = (SELECT id FROM outbox ORDER BY id LIMIT 1)`.execute(
      database.kysely,
    );
    relay();
    const committed = consume();
    await eventually(() => expect(committed.toSorted((a, b) => a - b)).toEqual(versions.slice(1)));
    await eventually(async () => expect(await unsent()).toHaveLength(1));
  });

  it('waits in the outbox while NATS is down', async () => {
    await nats.stop();
    relay();
    const committed = consume();
    await append(1);
    await nats.start();
    await eventually(() => expect(committed).toEqual([1]));
  });

  it('is sent again after JetStream lost its disk, and still takes effect only once', async () => {
    relay();
    const committed = consume();
    await append(1);
    await eventually(() => expect(committed).toEqual([1]));
    await nats.stop();
    await append(2);
    await nats.startEmpty();
    await eventually(() => expect(committed).toEqual([1, 2]));
    // The stream contains both again: the first was refilled, only the second was published.
    const { manager } = await broker().jetStream(AbortSignal.timeout(5_000));
    await eventually(async () => expect((await manager.streams.info('scheduling')).state.messages).toBe(2));
    expect(committed).toEqual([1, 2]);
  }, 120_000);

  it('is sent again if the stream was recreated while there was no traffic', async () => {
    relay();
    const committed = consume();
    await append(1);
    await eventually(async () => expect(await unsent()).toEqual([]));
    const { manager } = await broker().jetStream(AbortSignal.timeout(5_000));
    await manager.streams.delete('scheduling');
    await manager.streams.add(streamSettings);
    // This is the relay's first event in the new stream; it must not record its position as if it were the old stream.
    await append(2);
    await eventually(async () => expect((await manager.streams.info('scheduling')).state.messages).toBe(2));
    await eventually(() => expect(committed.toSorted((a, b) => a - b)).toEqual([1, 2]));
  });

  it('is retried if its handler fails', async () => {
    relay();
    let failures = 2;
    const committed = consume(() => {
      if (failures-- > 0) throw new Error('not yet');
    });
    await append(1);
    await eventually(() => expect(committed).toEqual([1]));
  });

  it.each([
    ['another service', new DomainError('service.unavailable')],
    ['its own database', new Error('Connection terminated unexpectedly')],
  ])('waits instead of being put aside while %s is unavailable', async (_, error) => {
    relay();
    let attempts = 0;
    const committed = consume(() => {
      attempts += 1;
      if (attempts <= 4) throw error;
    });
    await append(1);
    await eventually(() => expect(committed).toEqual([1]));
    expect(await deadLetters()).toEqual([]);
  });

  it('is tried as often as usual if it fails after it has waited for another service', async () => {
    relay();
    let deliveries = 0;
    const committed = consume(() => {
      deliveries += 1;
      if (deliveries <= 4) throw new DomainError('service.unavailable');
      if (deliveries <= 6) throw new Error('not yet');
    });
    await append(1);
    await eventually(() => expect(deliveries).toBe(7));
    await eventually(() => expect(committed).toEqual([1]));
    expect(await deadLetters()).toEqual([]);
  });

  it('becomes a dead letter after its last failure, in whichever process the others were', async () => {
    relay();
    let failures = 0;
    const poison = () => {
      failures += 1;
      // Waits in between do not put it off either.
      throw failures % 2 === 0 ? new DomainError('service.unavailable') : new Error('no');
    };
    const [first, second] = [consumer(poison), consumer(poison)];
    await append(1);
    await eventually(() => expect(failures).toBeGreaterThanOrEqual(2));
    await Promise.all([first[Symbol.asyncDispose](), second[Symbol.asyncDispose]()]);
    consume(poison);
    await eventually(async () => expect(await deadLetters()).toMatchObject([{ attempts: 3, error: 'Error: no' }]));
    expect(failures).toBe(5);
    expect(await database.kysely.selectFrom('eventFailure').selectAll().execute()).toEqual([]);
  });

  it('becomes a dead letter if it always fails', async () => {
    const { client } = await broker().jetStream(AbortSignal.timeout(5_000));
    await client.publish(events.customerChanged.subject, 'not protobuf');
    relay();
    const committed = consume();
    await append(1);
    await eventually(() => expect(committed).toEqual([1]));
    await eventually(async () => expect(await deadLetters()).toHaveLength(1));
    expect((await deadLetters())[0]).toMatchObject({
      consumer: 'calendar-customer-customer-changed',
      subject: 'scheduling.customer.v1.customer-changed',
      payload: Buffer.from('not protobuf'),
      attempts: 3,
    });
  });

  it('that arrives between an empty fetch and the check of the consumer does not cause the consumer to be replaced', async () => {
    let whenChecked: (() => Promise<unknown>) | undefined;
    const proxyUrl = await startProxy(stack, nats.url('calendar'), async (request, { forward }) => {
      if (request.includes('$JS.API.CONSUMER.INFO')) {
        const publish = whenChecked;
        whenChecked = undefined;
        await publish?.();
      }
      forward();
    });
    const committed = consume(undefined, proxyUrl);
    const { client, manager } = await broker().jetStream(AbortSignal.timeout(5_000));
    const consumer = () => manager.consumers.info('scheduling', 'calendar-customer-customer-changed');
    await eventually(async () => expect((await consumer()).num_waiting).toBe(1));
    const { created } = await consumer();
    // From here on, the next request for the consumer's state is the check after an empty fetch.
    whenChecked = () =>
      client.publish(events.customerChanged.subject, events.customerChanged.encode(changedCustomer(1)));
    await eventually(() => expect(committed).toEqual([1]));
    expect((await consumer()).created).toBe(created);
  });

  it('is delivered by a new consumer if the old one stopped delivering, and earlier ones are not redelivered', async () => {
    let isSilent = false;
    const subscriptions = new Map<string, string>();
    const proxyUrl = await startProxy(stack, nats.url('calendar'), async (request, { forward, answer }) => {
      if (request.includes('$JS.API.CONSUMER.DELETE')) isSilent = false;
      const [, subject, subscribed] = /^SUB (\S+) (\S+)/.exec(request) ?? [];
      if (subject !== undefined) subscriptions.set(subject, subscribed!);
      const inbox = /CONSUMER\.MSG\.NEXT\S+ (\S+)/.exec(request)?.[1];
      if (!isSilent || inbox === undefined) return forward();
      const subscription = subscriptions.get(inbox);
      const status = 'NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 20\r\nNats-Pending-Bytes: 0\r\n\r\n';
      answer(`HMSG ${inbox} ${subscription} ${status.length} ${status.length}\r\n${status}\r\n`);
    });
    const handled: number[] = [];
    const committed = consume((version) => handled.push(version), proxyUrl);
    relay();
    await append(1);
    await eventually(() => expect(committed).toEqual([1]));
    const { manager } = await broker().jetStream(AbortSignal.timeout(5_000));
    const consumer = () => manager.consumers.info('scheduling', 'calendar-customer-customer-changed');
    isSilent = true;
    await eventually(async () =>
      expect(await consumer()).toMatchObject({ num_waiting: 0, ack_floor: { stream_seq: 1 } }),
    );
    await append(2);
    await eventually(() => expect(committed).toEqual([1, 2]));
    expect(handled).toEqual([1, 2]);
  });

  it('is delivered soon after a reconnect, however long a fetch takes, even if NATS does not answer at first', async () => {
    let disconnect: (() => void) | undefined;
    let swallowed = 0;
    const proxyUrl = await startProxy(stack, nats.url('calendar'), async (request, { forward, close }) => {
      const isReconnected = disconnect !== undefined && disconnect !== close;
      disconnect = close;
      if (isReconnected) swallowed = 1;
      if (swallowed > 0 && request.includes('$JS.API.CONSUMER.INFO')) swallowed -= 1;
      else forward();
    });
    const committed = consume(undefined, proxyUrl, anHour);
    const { manager } = await broker().jetStream(AbortSignal.timeout(5_000));
    const consumer = () => manager.consumers.info('scheduling', 'calendar-customer-customer-changed');
    await eventually(async () => expect((await consumer()).num_waiting).toBe(1));
    disconnect!();
    relay();
    await append(1);
    await eventually(() => expect(committed).toEqual([1]));
  });

  it('is delivered although NATS lost the request for events, and the clock was set back since', async () => {
    let lost = 0;
    const proxyUrl = await startProxy(stack, nats.url('calendar'), async (request, { forward }) => {
      if (lost === 0 && request.includes('$JS.API.CONSUMER.MSG.NEXT')) lost += 1;
      else forward();
    });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + anHour });
    const committed = consume(undefined, proxyUrl);
    try {
      await eventually(() => expect(lost).toBe(1));
    } finally {
      vi.useRealTimers();
    }
    relay();
    await append(1);
    await eventually(() => expect(committed).toEqual([1]));
  });

  describe('when a process stops', () => {
    const isFetching = async () => {
      const { manager } = await broker().jetStream(AbortSignal.timeout(5_000));
      await eventually(async () =>
        expect((await manager.consumers.info('scheduling', 'calendar-customer-customer-changed')).num_waiting).toBe(1),
      );
      return manager;
    };
    const elapsedMs = async (work: () => Promise<unknown>): Promise<number> => {
      const beganMs = performance.now();
      await work();
      return performance.now() - beganMs;
    };

    it('is given back if it was on its way, and another process has it at once', async () => {
      let whenUnsubscribed: (() => Promise<unknown>) | undefined;
      const proxyUrl = await startProxy(stack, nats.url('calendar'), async (request, { forward }) => {
        if (request.startsWith('UNSUB')) {
          const send = whenUnsubscribed;
          whenUnsubscribed = undefined;
          await send?.();
        }
        forward();
      });
      const committed: number[] = [];
      const stopping = consumer((version) => committed.push(version), [], proxyUrl, anHour);
      const manager = await isFetching();
      const sent = Promise.withResolvers<void>();
      const publisher = await broker().jetStream(AbortSignal.timeout(5_000));
      whenUnsubscribed = async () => {
        for (const version of [1, 2, 3])
          await publisher.client.publish(
            events.customerChanged.subject,
            events.customerChanged.encode(changedCustomer(version)),
          );
        await eventually(async () =>
          expect(
            (await manager.consumers.info('scheduling', 'calendar-customer-customer-changed')).num_ack_pending,
          ).toBe(3),
        );
        sent.resolve();
      };
      await Promise.all([stopping[Symbol.asyncDispose](), sent.promise]);
      expect(committed).toEqual([]);
      const others = consume();
      // NATS itself would deliver them again after 15 s.
      expect(
        await elapsedMs(() => eventually(() => expect(others.toSorted((a, b) => a - b)).toEqual([1, 2, 3]))),
      ).toBeLessThan(8_000);
    });

    it.each(['does not answer', 'is away'])('does not delay it while NATS %s', async (state) => {
      let isSilent = false;
      const proxyUrl = await startProxy(stack, nats.url('calendar'), async (_request, { forward }) => {
        if (!isSilent) forward();
      });
      const stopping = consumer(() => undefined, [], proxyUrl, anHour);
      await isFetching();
      isSilent = true;
      if (state === 'is away') await nats.stop();
      expect(await elapsedMs(async () => stopping[Symbol.asyncDispose]())).toBeLessThan(5_000);
    });
  });

  it('carries the id of the request that caused it', async () => {
    await runWithContext({ requestId: 'request-1' }, () => append(1));
    const row = await database.kysely.selectFrom('outbox').select('requestId').executeTakeFirstOrThrow();
    expect(row.requestId).toBe('request-1');
  });

  it('is published by only one of several relays', async () => {
    relay();
    relay();
    const committed = consume();
    for (let version = 1; version <= 50; version += 1) await append(version);
    await eventually(() => expect(committed).toHaveLength(50));
    const { manager } = await broker().jetStream(AbortSignal.timeout(5_000));
    expect((await manager.streams.info('scheduling')).state.messages).toBe(50);
  });

  it('is published at once even if another process than the one with the active relay committed it', async () => {
    await activeRelay(anHour);
    const other = stack.use(
      createDatabase<MessagingSchema>({ url: databaseUrl, applicationName: 'test', logger, ...longTimeout }),
    );
    const connection = broker('customer');
    stack.use(startRelay({ service: 'customer', database: other, broker: connection, logger, pollMs: anHour }));
    await connection.jetStream(AbortSignal.timeout(5_000));
    await other.transaction((tx) => appendEvent(tx, events.customerChanged, changedCustomer(2)));
    await eventually(async () => expect(await unsent()).toEqual([]));
  });

  describe('that no commit announced is published', () => {
    async function appendSilently(): Promise<void> {
      await using other = createDatabase<MessagingSchema>({
        url: databaseUrl,
        applicationName: 'test',
        logger,
        ...longTimeout,
      });
      await other.transaction((tx) => appendEvent(tx, events.customerChanged, changedCustomer(2)));
    }

    it('at the next poll', async () => {
      await activeRelay(100);
      await appendSilently();
      await eventually(async () => expect(await unsent()).toEqual([]));
    });

    it('when NATS is back', async () => {
      await activeRelay(anHour);
      await nats.stop();
      await appendSilently();
      await nats.start();
      await eventually(async () => expect(await unsent()).toEqual([]));
    });

    it('when the relay has lost the connection that makes it the active one', async () => {
      await activeRelay(anHour);
      await appendSilently();
      await sql`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`.execute(
        database.kysely,
      );
      await eventually(async () => expect(await unsent()).toEqual([]));
    });
  });

  it('is published by the next relay when the first one stops', async () => {
    const options = { service: 'customer', logger, pollMs: anHour };
    const first = startRelay({ ...options, database, broker: broker('customer') });
    const committed = consume();
    await append(1);
    await eventually(() => expect(committed).toEqual([1]));
    const other = stack.use(
      createDatabase<MessagingSchema>({ url: databaseUrl, applicationName: 'test', logger, ...longTimeout }),
    );
    stack.use(startRelay({ ...options, database: other, broker: broker('customer') }));
    // It has tried to become the active one, in vain.
    await eventually(() => expect(other.pool.idleCount).toBe(1));
    await first[Symbol.asyncDispose]();
    await append(2);
    await eventually(() => expect(committed).toEqual([1, 2]));
  });
});
