import { DomainError } from '@scheduling/errors';
import { runWithContext } from '@scheduling/runtime';
import { createTestDatabase, eventually, testLogger } from '@scheduling/testing';
import { openLink } from '@scheduling/testing/link';
import { type Kysely, sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, isUniqueViolation, migrateDatabase, translatePostgresError } from '../src/index.ts';

interface Schema {
  thing: { name: string };
}

const logger = testLogger('postgres-test');
const sets = [
  {
    name: 'test',
    migrations: {
      '0001-things': {
        up: async (db: Kysely<unknown>) => {
          await sql`CREATE TABLE thing (name text, CONSTRAINT thing_name_key UNIQUE (name))`.execute(db);
        },
      },
    },
  },
];
const open = (url: string) => createDatabase<Schema>({ url, applicationName: 'test', logger });

describe('a database', () => {
  let url: string;
  beforeAll(async () => {
    url = await createTestDatabase();
    // Two replicas that migrate concurrently: one does it, the other waits.
    await Promise.all([migrateDatabase({ url, sets, logger }), migrateDatabase({ url, sets, logger })]);
  });

  it('keeps a transaction atomic and notifies of its commit', async () => {
    await using database = open(url);
    let commits = 0;
    database.onCommit(() => {
      commits += 1;
    });
    const failing = database.transaction(async (tx) => {
      await tx.insertInto('thing').values({ name: 'rolled back' }).execute();
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(commits).toBe(0);
    await database.transaction((tx) => tx.insertInto('thing').values({ name: 'kept' }).execute());
    expect(commits).toBe(1);
    expect(await database.kysely.selectFrom('thing').selectAll().execute()).toEqual([{ name: 'kept' }]);
  });

  it('rolls back a transaction if its caller no longer waits at the end of it', async () => {
    await using database = open(url);
    const caller = new AbortController();
    const insert = (name: string) => database.transaction((tx) => tx.insertInto('thing').values({ name }).execute());
    const insertAndAbort = () =>
      database.transaction(async (tx) => {
        await tx.insertInto('thing').values({ name: 'aborted' }).execute();
        caller.abort();
      });
    const aborted = await runWithContext({ requestId: 'r', signal: caller.signal }, insertAndAbort).catch(
      (failure: unknown) => failure,
    );
    expect(aborted).toMatchObject({ code: 'database.unavailable', cause: caller.signal.reason });
    const late = runWithContext({ requestId: 'r', deadlineMs: Date.now() - 1 }, () => insert('late'));
    await expect(late).rejects.toMatchObject({ code: 'database.unavailable' });
    await runWithContext(
      { requestId: 'r', deadlineMs: Date.now() + 60_000, signal: new AbortController().signal },
      () => insert('in time'),
    );
    const things = await database.kysely
      .selectFrom('thing')
      .select('name')
      .where('name', 'in', ['aborted', 'late', 'in time'])
      .execute();
    expect(things).toEqual([{ name: 'in time' }]);
  });

  it('has columns in camelCase, and does not change the keys of a jsonb value', async () => {
    await using database = open(url);
    const { rows } =
      await sql`SELECT '{"a_key": [{"b_key": 1}]}'::jsonb AS one_value, ARRAY['{"c_key": 1}'::jsonb] AS some_values`.execute(
        database.kysely,
      );
    expect(rows).toEqual([{ oneValue: { a_key: [{ b_key: 1 }] }, someValues: [{ c_key: 1 }] }]);
  });

  it('reports the constraint that a write violates', async () => {
    await using database = open(url);
    const insert = () => database.kysely.insertInto('thing').values({ name: 'once' }).execute();
    await insert();
    const error = await insert().catch((failure: unknown) => failure);
    expect(isUniqueViolation(error, 'thing_name_key')).toBe(true);
    expect(isUniqueViolation(error, 'another_key')).toBe(false);
    expect(translatePostgresError(error)).toBe(error);
  });

  it('is unavailable if it cannot be reached, or if a lock cannot be acquired', async () => {
    await using away = open('postgres://user:secret@127.0.0.1:1/nothing');
    const refused = await away.ping().catch((failure: unknown) => failure);
    expect(translatePostgresError(refused)).toMatchObject({ category: 'unavailable', code: 'database.unavailable' });

    await using database = open(url);
    await database.transaction(async (tx) => {
      await sql`LOCK TABLE thing`.execute(tx);
      const waiting = await database.kysely
        .insertInto('thing')
        .values({ name: 'late' })
        .execute()
        .catch((failure: unknown) => failure);
      expect(translatePostgresError(waiting)).toBeInstanceOf(DomainError);
    });
  });

  it.each(['53100', '53200', '58030'])(
    'reports a server without disk, memory or working storage as unavailable (%s)',
    async (state) => {
      await using database = open(url);
      const raise = sql`DO ${sql.raw(`$$ BEGIN RAISE 'no room' USING ERRCODE = '${state}'; END $$`)}`;
      const error: unknown = await raise.execute(database.kysely).catch((failure: unknown) => failure);
      expect(translatePostgresError(error)).toMatchObject({ code: 'database.unavailable', cause: { code: state } });
    },
  );

  it('is unavailable while it refuses the login, and says why', async () => {
    await using admin = open(url);
    const role = `role_${randomUUID()}`;
    await sql`CREATE ROLE ${sql.ref(role)} LOGIN PASSWORD 'first'`.execute(admin.kysely);
    const login = Object.assign(new URL(url), { username: role, password: 'first' }).href;
    const reason = async (database: ReturnType<typeof open>) =>
      translatePostgresError(await database.ping().catch((failure: unknown) => failure));

    await using database = open(login);
    await sql`ALTER ROLE ${sql.ref(role)} PASSWORD 'second'`.execute(admin.kysely);
    expect(await reason(database)).toMatchObject({
      code: 'database.unavailable',
      cause: { code: '28P01', message: expect.stringContaining(role) },
    });
    await sql`ALTER ROLE ${sql.ref(role)} NOLOGIN PASSWORD 'first'`.execute(admin.kysely);
    expect(await reason(database)).toMatchObject({ code: 'database.unavailable', cause: { code: '28000' } });
    await sql`ALTER ROLE ${sql.ref(role)} LOGIN`.execute(admin.kysely);
    await expect(database.ping()).resolves.toBeUndefined();

    await using missing = open(Object.assign(new URL(url), { pathname: '/nowhere' }).href);
    expect(await reason(missing)).toMatchObject({ code: 'database.unavailable', cause: { code: '3D000' } });
  });

  it('cannot store a NUL character, which is the caller’s fault', async () => {
    await using database = open(url);
    const [name, json] = ['a\0b', JSON.stringify({ name: 'a\0b' })];
    const inserts = [
      database.kysely.insertInto('thing').values({ name }).execute(),
      sql`INSERT INTO thing SELECT ${json}::jsonb ->> 'name'`.execute(database.kysely),
    ];
    for (const result of await Promise.allSettled(inserts)) {
      expect(result.status === 'rejected' && translatePostgresError(result.reason)).toMatchObject({
        category: 'invalid',
        code: 'text.invalid',
      });
    }
  });

  it('survives the loss of its idle connections', async () => {
    await using database = open(url);
    await database.ping();
    await using other = open(url);
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`.execute(
      other.kysely,
    );
    await eventually(() => expect(database.ping()).resolves.toBeUndefined());
  });

  it('gives up the connections to a machine that is gone without a word', async () => {
    await using link = await openLink(() => [Number(new URL(url).port)]);
    const address = new URL(url);
    address.port = String(link.port);
    address.searchParams.set('query_timeout', '2000');
    await using database = createDatabase({ url: address.href, applicationName: 'test', maxConnections: 2, logger });
    const ask = () => Promise.allSettled([1, 2].map(() => sql`SELECT pg_sleep(0.1)`.execute(database.kysely)));
    expect((await ask()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    link.abandon();
    const unanswered = (await ask()).map(
      (result) => result.status === 'rejected' && translatePostgresError(result.reason),
    );
    expect(unanswered).toEqual([1, 2].map(() => expect.objectContaining({ code: 'database.unavailable' })));
    expect((await ask()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
  });

  it('asks a server that does not answer for one connection at a time, and for more again when it does', async () => {
    const { port, hostname } = new URL(url);
    let asked = 0;
    let answers = false;
    await using server = createServer((socket) => {
      asked += 1;
      socket.on('error', () => undefined);
      if (answers) socket.pipe(connect(Number(port), hostname)).pipe(socket);
      else socket.resume();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = Object.assign(new URL(url), { port: String((server.address() as AddressInfo).port) });
    await using database = createDatabase({ url: address.href, applicationName: 'test', maxConnections: 5, logger });
    const ask = () =>
      Promise.allSettled(Array.from({ length: 5 }, () => sql`SELECT pg_sleep(0.1)`.execute(database.kysely)));
    const outcomes = async () => new Set((await ask()).map(({ status }) => status));
    for (const expected of [5, 6]) {
      expect(await outcomes()).toEqual(new Set(['rejected']));
      await eventually(() => expect(asked).toBe(expected));
    }
    answers = true;
    await eventually(async () => expect(await outcomes()).toEqual(new Set(['fulfilled'])));
    expect(database.pool.totalCount).toBe(5);
  });

  it('notices within half a minute that the machine of a session is gone', async () => {
    await using database = open(url);
    const settings = sql<{
      name: string;
      setting: string;
    }>`SELECT name, setting FROM pg_settings WHERE name LIKE 'tcp_keepalives_%' ORDER BY name`;
    expect((await settings.execute(database.kysely)).rows).toEqual([
      { name: 'tcp_keepalives_count', setting: '3' },
      { name: 'tcp_keepalives_idle', setting: '10' },
      { name: 'tcp_keepalives_interval', setting: '5' },
    ]);
  });

  it('returns int8 as a number, and rejects a value that a number cannot represent', async () => {
    await using database = open(url);
    expect((await database.pool.query('SELECT 9007199254740991::int8 AS value')).rows).toEqual([
      { value: Number.MAX_SAFE_INTEGER },
    ]);
    await expect(database.pool.query('SELECT 9007199254740992::int8 AS value')).rejects.toThrow(RangeError);
  });
});
