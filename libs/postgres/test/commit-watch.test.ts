import { createStandby, type PostgresServer, startPostgres, waitUntil, withClient } from '@scheduling/embedded';
import { within } from '@scheduling/runtime';
import { eventually, testLogger } from '@scheduling/testing';
import { type Link, openLink } from '@scheduling/testing/link';
import { sql } from 'kysely';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { callFunction, createDatabase, type Database, translatePostgresError } from '../src/index.ts';

const resources = new AsyncDisposableStack();
let folder: string;
let primary: PostgresServer;
let standby: PostgresServer;
/** The address of the database leads to these; without any, new connections are refused. */
let targets: PostgresServer[];
let link: Link;
let url: string;

const start = (name: string, port?: number) =>
  startPostgres({ dataDir: join(folder, name), port, durable: false, settings: { wal_keep_size: '512MB' } });
const writing = `pg_logical_emit_message(true, 'test', '')`;
const unavailable = { code: 'database.unavailable' };
const open = () =>
  createDatabase<unknown>({ url, applicationName: 'watched', maxConnections: 5, logger: testLogger('watch-test') });
const transact = (database: Database<unknown>) =>
  database.transaction((tx) => sql`SELECT ${sql.raw(writing)}`.execute(tx));
const call = ({ kysely }: Database<unknown>) =>
  callFunction(kysely, { name: 'write', request: { crmId: 'demo' }, locks: '' });
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => translatePostgresError(error),
  );
const execute = (statement: string) => withClient(primary.url('postgres'), (client) => client.query(statement));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'commit-watch-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  primary = await start('primary');
  resources.defer(() => primary.stop());
  await createStandby(primary, { dataDir: join(folder, 'standby'), name: 'standby' });
  standby = await start('standby');
  resources.defer(() => standby.stop());
  await execute(`
    CREATE FUNCTION write(request jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(${writing}::text) $$`);
  await execute(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
  await execute('SELECT pg_reload_conf()');
  await waitForStandby();
  link = resources.use(await openLink(() => targets.map(({ port }) => port)));
  url = Object.assign(new URL(primary.url('postgres')), { port: String(link.port) }).href;
}, 120_000);
afterAll(() => resources.disposeAsync());
beforeEach(() => {
  targets = [primary];
});

it('is read while its standby is away, but only if a new connection leads to the same server', async () => {
  await using database = open();
  await transact(database);
  await withoutStandby(async () => {
    await eventually(() => database.requireCurrent());
    targets = [];
    await eventually(async () => expect(await failureOf(database.requireCurrent())).toMatchObject(unavailable));
    targets = [primary];
    await eventually(() => database.requireCurrent());
    expect(await portOf(database)).toBe(primary.port);
  });
});

it.each([
  { what: 'transactions', write: transact },
  { what: 'functions', write: call },
])('begins no $what while its standby is away', async ({ write }) => {
  await using database = open();
  await write(database);
  await withoutStandby(async () => {
    const refused = {
      ...unavailable,
      cause: { message: 'a commit does not finish: is the synchronous standby away?' },
    };
    // Those that are begun in the first two seconds wait for their answer.
    await eventually(async () => expect(await within(failureOf(write(database)), 200)).toMatchObject(refused));
    const waiting = await countWaiting();
    for (let attempts = 1; attempts <= 10; attempts += 1)
      expect(await failureOf(write(database))).toMatchObject(refused);
    expect(await countWaiting()).toBe(waiting);
  });
  await eventually(() => write(database));
});

it('accepts writes again after its connections were lost without a word', async () => {
  await using database = open();
  await transact(database);
  await database.requireCurrent();
  link.abandon();
  const abandonedMs = performance.now();
  await eventually(() => expect(performance.now() - abandonedMs).toBeGreaterThan(250));
  // What was found out before does not count any more, so this commits, with a connection that is lost.
  await database.requireCurrent();
  await eventually(async () => expect(await failureOf(transact(database))).toBeUndefined());
});

it('is closed at once while its standby is away', async () => {
  await withoutStandby(async () => {
    const [hanging, connecting] = [open(), open()];
    await Promise.all([hanging.ping(), connecting.ping()]);
    await hanging.requireCurrent();
    void failureOf(connecting.requireCurrent());
    const startedMs = performance.now();
    await Promise.all([hanging, connecting].map((database) => database[Symbol.asyncDispose]()));
    expect(performance.now() - startedMs).toBeLessThan(2_000);
  });
});

it('is read on the standby once that was promoted and the address leads there', async () => {
  await using database = open();
  await transact(database);
  await withClient(standby.url('postgres'), (client) => client.query('SELECT pg_promote()'));
  targets = [standby];
  await eventually(async () => {
    await database.requireCurrent();
    expect(await portOf(database)).toBe(standby.port);
  });
});

async function portOf({ kysely }: Database<unknown>): Promise<number> {
  const { rows } = await sql<{ port: string }>`SELECT current_setting('port') AS port`.execute(kysely);
  return Number(rows[0]!.port);
}

/** How many commits wait for the standby. */
async function countWaiting(): Promise<number | null> {
  const { rowCount } = await execute(`SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
  return rowCount;
}

async function waitForStandby(): Promise<void> {
  const isThere = async () =>
    (await execute(`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`)).rowCount === 1;
  await waitUntil(isThere, { what: 'the standby to follow', timeoutMs: 30_000 });
}

async function withoutStandby(action: () => Promise<void>): Promise<void> {
  const { port } = standby;
  await standby.stop();
  try {
    await action();
  } finally {
    standby = await start('standby', port);
    await waitForStandby();
  }
}
