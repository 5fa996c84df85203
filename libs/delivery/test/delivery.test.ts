import { createDatabase, type Database } from '@scheduling/postgres';
import { createTestDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { type Generated, type Kysely, sql } from 'kysely';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import {
  type DeliveryKind,
  type DeliveryTimings,
  dueAfter,
  type LeasedRow,
  type LeasedTable,
  putBackBlockedRows,
  startDelivery,
} from '../src/index.ts';

/** A kind other than mail: a parcel is posted to the address of a shop, one at a time. */
interface ParcelTable {
  crmId: string;
  id: Generated<string>;
  shop: string;
  state: Generated<'pending' | 'sent'>;
  dueAt: Generated<Date>;
  lease: string | null;
  expiresAt: Date | null;
  requestId: string;
  traceparent: string | null;
}

interface Schema {
  parcel: ParcelTable;
}

type ParcelRow = LeasedRow & { shop: string };
type Outcome = { outcome: 'sent' } | { outcome: 'retry'; afterMs: number };

const table: LeasedTable = {
  name: 'parcel',
  expires: true,
  lane: sql<string>`item.shop`,
  host: sql<string>`item.shop`,
};
const timings: DeliveryTimings = {
  pollMs: 60_000,
  leaseMs: 2_000,
  attemptMs: 5_000,
  firstPauseMs: 20,
  longestPauseMs: 50,
  stopMs: 1_000,
};
const logger = testLogger('delivery-test');
let database: Database<Schema>;
let server: Server;
let url: string;
/** The shops in the order of the requests, and the maximum number of concurrent requests to each. */
let requests: string[];
let atOnce: Map<string, number>;
let answer: (shop: string) => number | Promise<number>;

beforeAll(async () => {
  database = createDatabase<Schema>({
    url: await createTestDatabase(),
    applicationName: 'test',
    logger,
    ...longTimeout,
  });
  await sql`
    CREATE TABLE parcel (
      crm_id text NOT NULL, id uuid NOT NULL DEFAULT uuidv7(), shop text NOT NULL, state text NOT NULL DEFAULT 'pending',
      due_at timestamptz NOT NULL DEFAULT now(), lease uuid, expires_at timestamptz, request_id text NOT NULL, traceparent text,
      PRIMARY KEY (crm_id, id)
    )`.execute(database.kysely);
  server = createServer((request, response) => {
    void receive(request.url!.slice(1)).then((status) => response.writeHead(status).end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  requests = [];
  atOnce = new Map();
  answer = () => 204;
});
afterEach(() => database.kysely.deleteFrom('parcel').execute());
afterAll(async () => {
  server.close();
  await database[Symbol.asyncDispose]();
});

const underWay = new Map<string, number>();

async function receive(shop: string): Promise<number> {
  requests.push(shop);
  underWay.set(shop, (underWay.get(shop) ?? 0) + 1);
  atOnce.set(shop, Math.max(atOnce.get(shop) ?? 0, underWay.get(shop)!));
  const status = await answer(shop);
  underWay.set(shop, underWay.get(shop)! - 1);
  return status;
}

const kind: DeliveryKind<ParcelRow, Outcome> = {
  name: 'parcel',
  table,
  attempt: async ({ shop }, signal) => {
    const status = await fetch(`${url}/${shop}`, { method: 'POST', signal }).then(
      (response) => response.status,
      () => 0,
    );
    return status === 204 ? { outcome: 'sent' } : { outcome: 'retry', afterMs: 50 };
  },
  record: async ({ crmId, id, lease }, outcome) => {
    const changes =
      outcome.outcome === 'sent' ? { state: 'sent' as const } : { dueAt: dueAfter(outcome.afterMs, table) };
    await database.kysely
      .updateTable('parcel')
      .set({ lease: null, ...changes })
      .where('crmId', '=', crmId)
      .where('id', '=', id)
      .where('lease', '=', lease)
      .execute();
  },
  describe: ({ id }) => ({ id }),
  onResult: () => undefined,
};

const deliver = () => startDelivery({ kind, database, connections: 10, timings, logger });
const store = (crmId: string, ...shops: string[]) =>
  database.transaction((tx) =>
    tx
      .insertInto('parcel')
      .values(shops.map((shop) => ({ crmId, shop, requestId: 'request' })))
      .execute(),
  );
const pending = () => database.kysely.selectFrom('parcel').selectAll().where('state', '=', 'pending').execute();

it('starts on a commit, and retries without waiting for the next poll', async () => {
  let refusals = 3;
  answer = () => (refusals-- > 0 ? 503 : 204);
  await using _delivery = deliver();
  await store('crm', 'shop');
  await eventually(async () => expect(await pending()).toEqual([]));
  expect(requests).toHaveLength(4);
});

it('decides by the clock of the database whether a row has expired', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 600_000 });
  try {
    await database.kysely
      .insertInto('parcel')
      .values({ crmId: 'crm', shop: 'shop', requestId: 'request', expiresAt: sql<Date>`now() + interval '1 minute'` })
      .execute();
    let wasAborted: boolean | undefined;
    const attempt = async (_row: ParcelRow, signal: AbortSignal): Promise<Outcome> => {
      // Its own limit began earlier, so it ends first if there is no time left.
      await once(AbortSignal.timeout(1), 'abort');
      wasAborted = signal.aborted;
      return { outcome: 'sent' };
    };
    await using _delivery = startDelivery({ kind: { ...kind, attempt }, database, connections: 10, timings, logger });
    await eventually(() => expect(wasAborted).toBe(false));
  } finally {
    vi.useRealTimers();
  }
});

it('delivers one row per lane at a time, even with two processes', async () => {
  await store('crm', ...Array.from({ length: 10 }, () => 'shop'));
  await using _one = deliver();
  await using _other = deliver();
  await eventually(async () => expect(await pending()).toEqual([]));
  expect(requests).toHaveLength(10);
  expect(atOnce.get('shop')).toBe(1);
});

it('leaves room for other CRMs and hosts if one hangs', async () => {
  const hanging = Promise.withResolvers<number>();
  answer = (shop) => (shop.startsWith('slow') ? hanging.promise : 204);
  await store('slow', ...Array.from({ length: 20 }, (_, index) => `slow-${index}`));
  await using _delivery = deliver();
  await eventually(() => expect(requests).toHaveLength(5));
  await store('other', 'quick');
  await eventually(() => expect(requests).toContain('quick'));
  expect(requests).toHaveLength(6);
  hanging.resolve(204);
  await eventually(async () => expect(await pending()).toEqual([]));
});

it('delivers at once what is behind rows that have to wait for each other', async () => {
  const hanging = Promise.withResolvers<number>();
  answer = (shop) => (shop === 'slow' ? hanging.promise : 204);
  await store('crm', ...Array.from({ length: 5 }, () => 'slow'));
  await store('crm', 'quick');
  await using _delivery = deliver();
  await eventually(() =>
    expect(requests.toSorted((one, other) => one.localeCompare(other))).toEqual(['quick', 'slow']),
  );
  hanging.resolve(204);
  await eventually(async () => expect(await pending()).toEqual([]));
});

it('delivers what is behind more than a thousand rows that have to wait for another one, and these as soon as that one is gone', async () => {
  const isGate = sql<boolean>`EXISTS (SELECT FROM parcel AS gate WHERE gate.crm_id = item.crm_id AND gate.shop = 'gate' AND gate.state = 'pending')`;
  const waiting: LeasedTable = { ...table, isBlocked: sql<boolean>`item.shop LIKE 'waiting-%' AND ${isGate}` };
  await store('crm', ...Array.from({ length: 1_200 }, (_, index) => `waiting-${index}`));
  await store('crm', 'quick');
  const gate = { crmId: 'crm', shop: 'gate', requestId: 'request', dueAt: sql<Date>`now() + interval '1 day'` };
  await database.kysely.insertInto('parcel').values(gate).execute();
  await using _delivery = startDelivery({
    kind: { ...kind, table: waiting },
    database,
    connections: 50,
    timings: { ...timings, pollMs: 500 },
    logger,
  });
  await eventually(() => expect(requests).toEqual(['quick']));
  await database.transaction((tx) => tx.deleteFrom('parcel').where('shop', '=', 'gate').execute());
  for (const left of [1_000, 800, 600, 400, 200, 0])
    await eventually(async () => expect((await pending()).length).toBeLessThanOrEqual(left));
  expect(requests).toHaveLength(1_201);
});

const putBack = (parcels: LeasedTable) =>
  putBackBlockedRows(database.kysely as unknown as Kysely<unknown>, parcels, { limits: { perCrm: 5 }, leased: [] });

it('puts rows back until what they wait for is due, or has expired', async () => {
  const waiting: LeasedTable = {
    ...table,
    isBlocked: sql<boolean>`item.shop <> 'other'`,
    blockedUntil: sql<Date>`now() + item.shop::interval`,
  };
  await store('crm', '1 minute', '0 seconds', ...Array.from({ length: 997 }, () => '1 day'));
  const expiring = {
    crmId: 'crm',
    shop: '2 days',
    requestId: 'request',
    expiresAt: sql<Date>`now() + interval '30 seconds'`,
  };
  await database.kysely.insertInto('parcel').values(expiring).execute();
  expect(await putBack(waiting)).toBe(0);
  await store('crm', 'other');
  expect(await putBack(waiting)).toBe(1_000);
  const parcels = await pending();
  const longest = Math.max(...parcels.map(({ dueAt }) => dueAt.getTime()));
  const waits = (shop: string) => [
    ...new Set(
      parcels
        .filter((parcel) => parcel.shop === shop)
        .map(({ dueAt }) => Math.round((dueAt.getTime() - longest) / 1_000) + 300),
    ),
  ];
  expect([waits('1 day'), waits('1 minute'), waits('0 seconds')]).toEqual([[300], [60], [1]]);
  const expired = parcels.find(({ shop }) => shop === '2 days');
  expect(expired!.dueAt).toEqual(expired!.expiresAt);
});

it('leases ahead, and on disposal releases what it has not begun to deliver', async () => {
  const hanging = Promise.withResolvers<number>();
  answer = () => hanging.promise;
  await store('crm', ...Array.from({ length: 20 }, (_, index) => `shop-${index}`));
  const delivery = deliver();
  await eventually(() => expect(requests).toHaveLength(5));
  expect((await pending()).filter(({ lease }) => lease === null)).toEqual([]);
  const stopping = delivery[Symbol.asyncDispose]();
  await eventually(async () => expect((await pending()).filter(({ lease }) => lease === null)).toHaveLength(15));
  expect((await pending()).filter(({ lease, dueAt }) => lease === null && dueAt.getTime() > Date.now())).toEqual([]);
  hanging.resolve(204);
  await stopping;
  expect(requests).toHaveLength(5);
});

it('goes on with what it has leased while another row of the CRM is slow', async () => {
  const hanging = Promise.withResolvers<number>();
  answer = (shop) => (shop === 'shop-0' ? hanging.promise : 204);
  await store('crm', ...Array.from({ length: 20 }, (_, index) => `shop-${index}`));
  await using _delivery = deliver();
  await eventually(async () => expect(await pending()).toMatchObject([{ shop: 'shop-0' }]));
  hanging.resolve(204);
  await eventually(async () => expect(await pending()).toEqual([]));
});

it('renews its leases although another transaction has locked one of the rows', async () => {
  const hanging = Promise.withResolvers<number>();
  const release = Promise.withResolvers<void>();
  onTestFinished(() => release.resolve());
  answer = () => hanging.promise;
  await store('crm', 'locked', 'other');
  await using _delivery = deliver();
  await eventually(() => expect(requests).toHaveLength(2));
  const holding = database.transaction(async (tx) => {
    await tx.selectFrom('parcel').select('id').where('shop', '=', 'locked').forUpdate().execute();
    await release.promise;
  });
  const leasedUntil = async () => (await pending()).find(({ shop }) => shop === 'other')!.dueAt;
  const before = await leasedUntil();
  await eventually(async () => expect((await leasedUntil()).getTime()).toBeGreaterThan(before.getTime()));
  release.resolve();
  await holding;
  hanging.resolve(204);
  await eventually(async () => expect(await pending()).toEqual([]));
});

it('records nothing for a row whose lease it has lost', async () => {
  const hanging = Promise.withResolvers<number>();
  answer = () => hanging.promise;
  await store('crm', 'shop');
  await using _delivery = deliver();
  await eventually(() => expect(requests).toHaveLength(1));
  await sql`UPDATE parcel SET lease = gen_random_uuid(), due_at = now() + interval '1 hour'`.execute(database.kysely);
  const [taken] = await pending();
  hanging.resolve(204);
  await _delivery[Symbol.asyncDispose]();
  expect(await pending()).toEqual([taken]);
});
