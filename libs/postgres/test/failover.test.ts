import { withClient } from '@scheduling/embedded';
import { createTestDatabase, eventually, startTestPostgres, testLogger } from '@scheduling/testing';
import { openLink } from '@scheduling/testing/link';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createDatabase,
  createLeadership,
  type Database,
  migrateDatabase,
  translatePostgresError,
} from '../src/index.ts';

const logger = testLogger('failover-test');
const lock = 42;

const open = (url: string, maxConnections = 5) =>
  createDatabase<unknown>({ url, applicationName: 'failover', maxConnections, logger });
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => translatePostgresError(error),
  );
const readOnly = { code: 'database.unavailable', cause: { message: 'Postgres is read-only: is this a standby?' } };
const write = ({ kysely }: Database<unknown>) => sql`CREATE TEMPORARY TABLE thing () ON COMMIT DROP`.execute(kysely);
const becomeReadOnly = 'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY';

describe('a database whose server is read-only', () => {
  it('is unavailable, and is used again as soon as it accepts writes', async () => {
    const url = await createTestDatabase();
    const name = sql.ref(new URL(url).pathname.slice(1));
    await using admin = open(url);
    await admin.ping();
    await sql`ALTER DATABASE ${name} SET default_transaction_read_only = on`.execute(admin.kysely);

    await using database = open(url);
    expect(await failureOf(database.ping())).toMatchObject(readOnly);
    expect(await failureOf(write(database))).toMatchObject(readOnly);
    await expect(migrateDatabase({ url, sets: [], logger })).rejects.toThrow(readOnly.cause.message);
    await sql`ALTER DATABASE ${name} RESET default_transaction_read_only`.execute(admin.kysely);
    await eventually(() => database.ping());
    await write(database);
  });

  it('does not wait for the end of a connection that it refuses', async () => {
    const url = new URL(await createTestDatabase());
    const name = sql.ref(url.pathname.slice(1));
    await using admin = open(url.href);
    await admin.ping();
    await sql`ALTER DATABASE ${name} SET default_transaction_read_only = on`.execute(admin.kysely);
    await using link = await openLink(() => [Number(url.port)]);
    // When it has answered that it is read-only, its machine is gone.
    const warn = () => link.silence();
    const silenced = { ...logger, warn } as unknown as typeof logger;
    await using database = createDatabase<unknown>({
      url: Object.assign(new URL(url), { port: String(link.port) }).href,
      applicationName: 'failover',
      logger: silenced,
    });
    expect(await failureOf(database.ping())).toMatchObject(readOnly);
  });

  it('gives up connections that become read-only', async () => {
    await using database = open(await createTestDatabase(), 1);
    const transact = () =>
      database.transaction((tx) => sql`CREATE TEMPORARY TABLE thing () ON COMMIT DROP`.execute(tx));
    for (const use of [() => write(database), transact, () => database.ping()]) {
      await sql.raw(becomeReadOnly).execute(database.kysely);
      expect(await failureOf(use())).toMatchObject({ code: readOnly.code });
      await use();
    }
  });
});

describe('a database all of whose connections are in use', () => {
  it('is available', async () => {
    await using database = open(await createTestDatabase(), 1);
    const waiting = sleep(database, 2);
    await expect(database.ping()).resolves.toBeUndefined();
    await waiting;
  });
});

describe('a database that is on another server now', () => {
  const resources = new AsyncDisposableStack();
  let previous: URL;
  /** With the same database, and the same password. */
  let present: URL;

  beforeAll(async () => {
    const { url } = resources.use(await startTestPostgres('embedded'));
    previous = new URL(await createTestDatabase());
    present = Object.assign(new URL(previous), { port: new URL(url('postgres')).port });
    const password = decodeURIComponent(previous.password);
    await withClient(url('postgres'), async (client) => {
      await client.query(`CREATE DATABASE ${client.escapeIdentifier(previous.pathname.slice(1))}`);
      await client.query(`ALTER ROLE CURRENT_USER PASSWORD ${client.escapeLiteral(password)}`);
    });
  });
  afterAll(() => resources.disposeAsync());

  /** An address that leads to one of two servers, as that of a Service does. */
  async function openAddress() {
    const ports = [previous, present].map(({ port }) => Number(port));
    let server = 0;
    const link = await openLink(() => [ports[server]!]);
    return {
      url: Object.assign(new URL(previous), { port: String(link.port) }).href,
      switch: () => (server = 1),
      [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
    };
  }

  const portOf = async ({ kysely }: Database<unknown>): Promise<number> => {
    const { rows } = await sql<{ port: string }>`SELECT current_setting('port') AS port`.execute(kysely);
    return Number(rows[0]!.port);
  };

  it('closes the connections to the previous one once a new connection leads to the present one', async () => {
    await using address = await openAddress();
    await using database = open(address.url);
    const ask = () => Promise.all([1, 2].map(() => portOf(database)));
    const before = Number(previous.port);
    expect(await ask()).toEqual([before, before]);
    address.switch();
    // Both connections are in use, so a third one is opened.
    const used = await Promise.allSettled([...Array.from({ length: 2 }, () => sleep(database)), portOf(database)]);
    expect(used.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(await ask()).not.toContain(before);
  });

  it('does so within two seconds if a statement gets no response', async () => {
    await using address = await openAddress();
    await using database = open(address.url, 1);
    expect(await portOf(database)).toBe(Number(previous.port));
    address.switch();
    const startedMs = performance.now();
    expect(await failureOf(sleep(database))).toMatchObject({ code: 'database.unavailable' });
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    expect(await portOf(database)).not.toBe(Number(previous.port));
  });

  it('does not leave the leadership on the previous one', async () => {
    await using address = await openAddress();
    await using database = open(address.url);
    let losses = 0;
    await using leadership = createLeadership(database.pool, lock, () => (losses += 1));
    expect(await leadership.acquire()).toBe(true);
    address.switch();
    await portOf(database);
    expect(leadership.held).toBe(false);
    expect(losses).toBe(1);
    expect(await leadership.acquire()).toBe(true);
  });

  it('is not led by a process on a server that has lost its synchronous standby', async () => {
    const url = new URL(present);
    url.searchParams.set('query_timeout', '500');
    await using database = open(url.href);
    await using leadership = createLeadership(database.pool, lock);
    await waitForStandby(present, `'missing'`);
    await expect(leadership.acquire()).rejects.toThrow('Query read timeout');
    expect(leadership.held).toBe(false);
    await waitForStandby(present, 'DEFAULT');
    await eventually(async () => expect(await leadership.acquire()).toBe(true));

    await waitForStandby(present, `'missing'`);
    await eventually(() => expect(leadership.acquire()).rejects.toThrow('Query read timeout'));
    expect(leadership.held).toBe(false);
    await waitForStandby(present, 'DEFAULT');
  });
});

describe('leadership', () => {
  it('is given up when its connection has become read-only', async () => {
    await using database = open(await createTestDatabase(), 1);
    await sql.raw(becomeReadOnly).execute(database.kysely);
    await using leadership = createLeadership(database.pool, lock);
    expect(await failureOf(leadership.acquire())).toMatchObject({ code: 'database.unavailable' });
    expect(leadership.held).toBe(false);
    expect(await leadership.acquire()).toBe(true);
  });
});

function sleep({ kysely }: Database<unknown>, seconds = 4): Promise<unknown> {
  return sql`SELECT pg_sleep(${seconds})`.execute(kysely);
}

/** From now on, a commit waits for these standbys. */
async function waitForStandby({ href }: URL, names: string): Promise<void> {
  await withClient(href, async (client) => {
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = ${names}`);
    await client.query('SELECT pg_reload_conf()');
  });
}
