import type { CustomerChanged } from '@scheduling/contracts/events/v1';
import { connectBroker, eventHeaders, events } from '@scheduling/events';
import { createDatabase, type Database, migrateDatabase } from '@scheduling/postgres';
import { currentContext, runWithContext } from '@scheduling/runtime';
import {
  countDeadlocks,
  createTestDatabase,
  eventually,
  longTimeout,
  startTestNats,
  testLogger,
  type TestNats,
} from '@scheduling/testing';
import { sql, type Transaction } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createInbox } from '../src/inbox.ts';
import {
  appendEvent,
  type Effect,
  type MessagingSchema,
  messagingMigrations,
  startConsumers,
  startRelay,
  subscription,
} from '../src/index.ts';
import { changedCustomer } from './changed-customer.ts';

const logger = testLogger('messaging-test');
const consumerName = 'calendar-customer-customer-changed';

let stack: AsyncDisposableStack;
let database: Database<MessagingSchema>;
let databaseUrl: string;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  databaseUrl = await createTestDatabase();
  await migrateDatabase({ url: databaseUrl, sets: [messagingMigrations], logger });
  database = stack.use(
    createDatabase<MessagingSchema>({ url: databaseUrl, applicationName: 'test', logger, ...longTimeout }),
  );
  await sql`CREATE TABLE effect (version integer, request_id text, transaction xid8 DEFAULT pg_current_xact_id())`.execute(
    database.kysely,
  );
});
afterEach(() => stack.disposeAsync());

interface EffectRow {
  version: number;
  requestId: string;
  transaction: string;
}

const effects = async () => (await sql<EffectRow>`SELECT * FROM effect ORDER BY version`.execute(database.kysely)).rows;
const versions = async () => (await effects()).map(({ version }) => version);
const inboxed = () => database.kysely.selectFrom('inbox').select('eventId').execute();
const lock = (db: Transaction<MessagingSchema>, key: number) =>
  sql`SELECT pg_advisory_xact_lock(${key}::bigint)`.execute(db);

async function store(tx: Transaction<MessagingSchema>, version: number): Promise<void> {
  await sql`INSERT INTO effect (version, request_id) VALUES (${version}, ${currentContext()?.requestId})`.execute(tx);
}

/** Holds an advisory lock until it is released. */
async function holdLock(key: number): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  stack.defer(release.resolve);
  const holding = database.transaction(async (tx) => {
    await lock(tx, key);
    held.resolve();
    await release.promise;
  });
  await held.promise;
  return () => {
    release.resolve();
    return holding;
  };
}

describe('events whose effects are ready together', () => {
  let nats: TestNats;

  beforeEach(async () => {
    nats = stack.use(await startTestNats());
  });

  const broker = (user: 'customer' | 'calendar' | 'test') =>
    stack.use(connectBroker({ url: nats.url(user), name: user, logger }));
  const append = async (...numbers: number[]): Promise<void> => {
    for (const version of numbers) {
      await runWithContext({ requestId: `request ${version}` }, () =>
        database.transaction((tx) => appendEvent(tx, events.customerChanged, changedCustomer(version))),
      );
    }
  };
  const inDelivery = async () => {
    const { manager } = await broker('test').jetStream(AbortSignal.timeout(5_000));
    return (await manager.consumers.info('scheduling', consumerName)).num_ack_pending;
  };

  /**
   * Consumes with these effects. The handlers wait for each other, so that the first effects are ready at the same
   * time. Returns the versions that they handle, again if an event is delivered again.
   */
  function consume(
    count: number,
    effect: (tx: Transaction<MessagingSchema>, version: number) => Promise<void>,
  ): number[] {
    const handled: number[] = [];
    const all = Promise.withResolvers<void>();
    const handle = async ({ version }: CustomerChanged): Promise<Effect<MessagingSchema>> => {
      handled.push(version);
      if (handled.length === count) all.resolve();
      await all.promise;
      return (tx) => effect(tx, version);
    };
    const subscriptions = [subscription<MessagingSchema, CustomerChanged>(events.customerChanged, handle)];
    stack.use(startRelay({ service: 'customer', database, broker: broker('customer'), logger }));
    stack.use(
      startConsumers<MessagingSchema>({
        service: 'calendar',
        database,
        broker: broker('calendar'),
        logger,
        subscriptions,
      }),
    );
    return handled;
  }

  it('share a transaction, each with its own request, and are acknowledged after its commit', async () => {
    const gate = Promise.withResolvers<void>();
    stack.defer(gate.resolve);
    const begun = Promise.withResolvers<void>();
    await append(1, 2, 3);
    consume(3, async (tx, version) => {
      await store(tx, version);
      begun.resolve();
      await gate.promise;
    });
    await begun.promise;
    expect(await inDelivery()).toBe(3);
    gate.resolve();
    await eventually(async () => expect(await inDelivery()).toBe(0));
    const stored = await effects();
    expect(stored).toMatchObject([1, 2, 3].map((version) => ({ version, requestId: `request ${version}` })));
    expect(new Set(stored.map(({ transaction }) => transaction)).size).toBe(1);
    expect(await inboxed()).toHaveLength(3);
  });

  it('take effect although one of them fails, which is tried again', async () => {
    let failures = 2;
    await append(1, 2, 3);
    const handled = consume(3, async (tx, version) => {
      await store(tx, version);
      if (version === 2 && failures-- > 0) throw new Error('not yet');
    });
    await eventually(async () => expect(await versions()).toEqual([1, 2, 3]));
    expect(handled.toSorted((one, other) => one - other)).toEqual([1, 2, 2, 3]);
    await eventually(async () => expect(await inDelivery()).toBe(0));
    expect(await inboxed()).toHaveLength(3);
  });

  it('take effect while one of them waits for a lock, which takes effect later', async () => {
    const release = await holdLock(2);
    const timeouts = new Set<string>();
    await append(1, 2, 3);
    const handled = consume(3, async (tx, version) => {
      const { rows } = await sql<{ lockTimeout: string }>`SHOW lock_timeout`.execute(tx);
      timeouts.add(rows[0]!.lockTimeout);
      await lock(tx, version);
      await store(tx, version);
    });
    await eventually(async () => expect(await versions()).toEqual([1, 3]));
    await release();
    await eventually(async () => expect(await versions()).toEqual([1, 2, 3]));
    expect(handled.filter((version) => version !== 2)).toHaveLength(2);
    expect([...timeouts]).toEqual(['100ms']);
  });

  it('take effect once, however often they were delivered', async () => {
    const { client } = await broker('test').jetStream(AbortSignal.timeout(5_000));
    const { subject, type, encode } = events.customerChanged;
    const publish = (id: string, version: number) =>
      client.publish(subject, encode(changedCustomer(version)), {
        headers: eventHeaders({
          id,
          service: 'customer',
          type,
          time: new Date(),
          requestId: 'request',
          repeated: true,
        }),
      });
    const known = randomUUID();
    await database.kysely.insertInto('inbox').values({ consumer: consumerName, eventId: known }).execute();
    const twice = randomUUID();
    for (const [id, version] of [
      [twice, 1],
      [randomUUID().toUpperCase(), 2],
      [twice, 1],
      [known, 3],
    ] as const)
      await publish(id, version);
    consume(3, store);
    await eventually(async () => expect(await versions()).toEqual([1, 2]));
    await eventually(async () => expect(await inDelivery()).toBe(0));
    expect(await versions()).toEqual([1, 2]);
    expect(await inboxed()).toHaveLength(3);
  });
});

describe('effects that are calls of a SQL function', () => {
  it('share a statement with those that follow, and keep their order among other effects', async () => {
    await sql`
      CREATE TABLE made (place serial, version integer, statement timestamptz DEFAULT statement_timestamp());
      CREATE FUNCTION make(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
      BEGIN
        IF request ->> 'crmId' = 'broken' THEN RAISE 'broken'; END IF;
        INSERT INTO made (version) VALUES ((request ->> 'version')::integer);
        RETURN NULL;
      END $$`.execute(database.kysely);
    const inbox = createInbox(database, 'consumer');
    const call = (version: number, crmId = 'crm'): Effect<MessagingSchema> => {
      const request = { crmId, version };
      return { name: 'make', request };
    };
    const other: Effect<MessagingSchema> = async (tx) =>
      void (await sql`INSERT INTO made (version) VALUES (3)`.execute(tx));
    const made = async () =>
      (
        await sql<{
          version: number;
          statement: string;
        }>`SELECT version, statement::text FROM made ORDER BY place`.execute(database.kysely)
      ).rows;

    await Promise.all([call(1), call(2), other, call(4), call(5)].map((effect) => inbox.apply(randomUUID(), effect)));
    const rows = await made();
    expect(rows.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5]);
    const [first, second, third, fourth, fifth] = rows.map(({ statement }) => statement);
    expect([second, fifth]).toEqual([first, fourth]);
    expect(new Set([first, third, fourth]).size).toBe(3);

    const outcomes = await Promise.allSettled(
      [call(6), call(7, 'broken'), call(8)].map((effect) => inbox.apply(randomUUID(), effect)),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(new Set((await made()).slice(5).map(({ version }) => version))).toEqual(new Set([6, 8]));
  });
});

describe('effects of two processes', () => {
  const openInbox = () =>
    createInbox(
      stack.use(createDatabase<MessagingSchema>({ url: databaseUrl, applicationName: 'test', logger, ...longTimeout })),
      'consumer',
    );

  it('that take the same locks in another order do not deadlock', async () => {
    const holding = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const applied = (
      [
        [1, 2],
        [2, 1],
      ] as const
    ).flatMap((keys, process) => {
      const inbox = openInbox();
      return keys.map((key, index) => {
        const eventId = randomUUID();
        const effect = async (tx: Transaction<MessagingSchema>): Promise<void> => {
          await lock(tx, key);
          if (index > 0) return;
          holding[process]!.resolve();
          await holding[1 - process]!.promise;
        };
        return eventually(() => inbox.apply(eventId, effect));
      });
    });
    expect(await Promise.all(applied)).toEqual([true, true, true, true]);
    await stack.disposeAsync();
    expect(await countDeadlocks(databaseUrl)).toBe(0);
  });

  it('that process the same events happen once', async () => {
    const ids = Array.from({ length: 30 }, (): string => randomUUID());
    const orders = [ids, ids.toReversed()].map((order) => ({ order, inbox: openInbox() }));
    const effectOf = (id: string) => (tx: Transaction<MessagingSchema>) => store(tx, ids.indexOf(id));
    await Promise.all(
      orders.flatMap(({ order, inbox }) => order.map((id) => eventually(() => inbox.apply(id, effectOf(id))))),
    );
    expect(await versions()).toEqual([...ids.keys()]);
  });
});
