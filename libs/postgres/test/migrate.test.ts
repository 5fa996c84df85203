import { countDeadlocks, createTestDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import type { Logger } from '@scheduling/runtime';
import { type Kysely, sql } from 'kysely';
import { Pool } from 'pg';
import { describe, expect, it } from 'vitest';
import {
  concurrentIndex,
  createDatabase,
  migrateDatabase,
  type MigrationSet,
  type SchemaMigration,
} from '../src/index.ts';

interface Schema {
  thing: { name: string; color?: string };
}

const silent = testLogger('migrate-test');
const createThing = statement('CREATE TABLE thing (name text)');
const addColor = statement('ALTER TABLE thing ADD COLUMN color text');
const first = { '0001-thing': createThing };
const expanded = { ...first, '0002-color': addColor };
const indexed = { ...first, '0002-index': concurrentIndex('thing_by_name', 'thing (name) WHERE name IS NOT NULL') };

describe('a migration whose table is locked by a long transaction', () => {
  it('lets the queries of that table through, and is tried again until it gets the lock', async () => {
    const url = await createTestDatabase();
    await migrate(url, first);
    await using holder = await lockingSession(url, 'SELECT FROM thing');
    const { logger, warnings } = recordingLogger();
    const migrating = migrate(url, expanded, logger);
    // With the lock timeout of a service.
    await using service = createDatabase<Schema>({ url, applicationName: 'test', logger: silent, ...longTimeout });
    for (const attempts of [1, 2]) {
      await untilWaiting(url, 'migration', 'relation');
      await expect(service.kysely.selectFrom('thing').selectAll().execute()).resolves.toEqual([]);
      await eventually(() => expect(warnings.length).toBeGreaterThanOrEqual(attempts));
    }
    await holder.query('COMMIT');
    await migrating;
    await expect(
      service.kysely.insertInto('thing').values({ name: 'ball', color: 'red' }).execute(),
    ).resolves.toBeDefined();
    expect(await history(holder)).toEqual(['0001-thing', '0002-color']);
    expect(warnings).toMatchObject(
      warnings.map((_, index) => ({
        set: 'test',
        migration: '0002-color',
        attempt: index + 1,
        err: { code: '55P03' },
      })),
    );
  });

  it('does not hold the locks of the migrations before it, which have been committed', async () => {
    const url = await createTestDatabase();
    let runs = 0;
    const counted: SchemaMigration = { up: (db) => addColor.up(db).then(() => void (runs += 1)) };
    const before = { ...first, '0002-other': statement('CREATE TABLE other (name text)') };
    await migrate(url, before);
    await using holder = await lockingSession(url, 'SELECT FROM other');
    const { logger, warnings } = recordingLogger();
    const migrating = migrate(
      url,
      { ...before, '0003-color': counted, '0004-other-color': statement('ALTER TABLE other ADD COLUMN color text') },
      logger,
    );
    await untilWaiting(url, 'migration', 'relation');
    await using service = createDatabase<Schema>({ url, applicationName: 'test', logger: silent, ...longTimeout });
    await service.kysely.insertInto('thing').values({ name: 'ball', color: 'red' }).execute();
    await eventually(() => expect(warnings).not.toEqual([]));
    await holder.query('COMMIT');
    await migrating;
    expect(runs).toBe(1);
  });

  it('is tried again after a deadlock', async () => {
    const url = await createTestDatabase();
    const before = { ...first, '0002-other': statement('CREATE TABLE other (name text)') };
    await migrate(url, before);
    await using holder = await lockingSession(url, 'SELECT FROM other');
    // So that the migration is the one that finds the deadlock.
    await holder.query("SET deadlock_timeout = '1 min'");
    const gate = createGate();
    const changeBoth: SchemaMigration = {
      up: async (db: Kysely<unknown>) => {
        await addColor.up(db);
        await gate.pass();
        await sql`ALTER TABLE other ADD COLUMN color text`.execute(db);
      },
    };
    const { logger, warnings } = recordingLogger();
    const migrating = migrate(url, { ...before, '0003-both': changeBoth }, logger);
    await gate.reached;
    const reading = holder.query('SELECT FROM thing').then(() => holder.query('COMMIT'));
    await untilWaiting(url, 'test', 'relation');
    gate.open();
    await reading;
    await migrating;
    expect(warnings).toMatchObject([{ migration: '0003-both', attempt: 1, err: { code: '40P01' } }]);
    expect(await history(holder)).toEqual(['0001-thing', '0002-other', '0003-both']);
  });

  it('gives up in the end, with the name of the migration, and runs the next time', async () => {
    const url = await createTestDatabase();
    await migrate(url, first);
    await using holder = await lockingSession(url, 'SELECT FROM thing');
    const { logger, warnings } = recordingLogger();
    await expect(migrateDatabase({ url, sets: setOf(expanded), logger, patienceMs: 2_000 })).rejects.toThrow(
      /test\/0002-color .* pg_stat_activity/,
    );
    expect(warnings).not.toEqual([]);
    expect(await history(holder)).toEqual(['0001-thing']);
    await holder.query('COMMIT');
    await migrate(url, expanded);
    expect(await history(holder)).toEqual(['0001-thing', '0002-color']);
  });
});

it('keeps the migrations before one that fails', async () => {
  const url = await createTestDatabase();
  const { logger, warnings } = recordingLogger();
  await expect(
    migrate(url, { ...first, '0002-failing': statement('ALTER TABLE nowhere ADD COLUMN name text') }, logger),
  ).rejects.toThrow(/nowhere/);
  await using session = await openSession(url);
  expect(await history(session)).toEqual(['0001-thing']);
  expect(warnings).toEqual([]);
  await migrate(url, expanded);
  expect(await history(session)).toEqual(['0001-thing', '0002-color']);
});

describe('a migration whose number is too low', () => {
  const other = statement('SELECT 1');

  it.each([
    { of: 'the same number as another one', names: ['0001-thing', '0001-other'] },
    { of: 'a lower number than the one before it', names: ['0002-thing', '0001-other'] },
    { of: 'a date after a number', names: ['0001-thing', '2026-11-21-other'] },
    { of: 'a lower date than the one before it', names: ['2026-11-21-thing', '2026-11-20-other'] },
  ])('is refused: $of', async ({ names: [name, next] }) => {
    const url = await createTestDatabase();
    const migrations = { [name!]: createThing, [next!]: other };
    await expect(migrate(url, migrations)).rejects.toThrow(`test/${next} must have a higher number than ${name}`);
    expect(() =>
      createDatabase({ url, applicationName: 'test', migrations: setOf(migrations), logger: silent }),
    ).toThrow(`test/${next} must have a higher number than ${name}`);
  });

  it('is refused after one of another version that has run', async () => {
    const url = await createTestDatabase();
    await migrate(url, expanded);
    await expect(migrate(url, { ...first, '0002-other': other })).rejects.toThrow(
      'test/0002-other must have a higher number than 0002-color',
    );
  });

  it('is refused if there is no number', async () => {
    const url = await createTestDatabase();
    await expect(migrate(url, { ...first, other })).rejects.toThrow('test/other must have a name such as 0016-what');
  });
});

it('runs migrations in the order of the list, those with dates before those with numbers', async () => {
  const url = await createTestDatabase();
  const dated = { '2026-11-21-thing': createThing, '2027-01-20-color': addColor };
  await migrate(url, dated);
  const shape = statement('ALTER TABLE thing ADD COLUMN shape text');
  await migrate(url, { ...dated, '0001-shape': shape, '0010-size': statement('SELECT shape FROM thing') });
  await using session = await openSession(url);
  expect(await history(session)).toEqual([...Object.keys(dated), '0001-shape', '0010-size']);
});

describe('a run while another one is in progress', () => {
  it('waits for it, longer than for the lock of a table', async () => {
    const url = await createTestDatabase();
    const gate = createGate();
    let runs = 0;
    const slow: SchemaMigration = { up: () => gate.pass().then(() => void (runs += 1)) };
    const one = migrate(url, { ...first, '0002-slow': slow });
    await gate.reached;
    const { logger, messages } = recordingLogger();
    const other = migrate(url, { ...first, '0002-slow': slow }, logger);
    await eventually(() => expect(messages).toContain('waiting for another run of the migrations'));
    await using session = await openSession(url);
    await eventually(async () => {
      const { rows } = await session.query(
        "SELECT min(now() - backend_start) > '1.5 s' AS long FROM pg_stat_activity WHERE application_name = 'migration' AND datname = current_database()",
      );
      expect(rows).toEqual([{ long: true }]);
    });
    gate.open();
    await Promise.all([one, other]);
    expect(runs).toBe(1);
    expect(messages).not.toContain('migrated');
  });

  it('does not run if that one is newer and makes a breaking migration', async () => {
    const url = await createTestDatabase();
    const gate = createGate();
    const newer = migrate(url, { ...first, '0002-breaking': { breaking: true, up: () => gate.pass() } });
    await gate.reached;
    const { logger, messages } = recordingLogger();
    const older = migrate(url, first, logger);
    await eventually(() => expect(messages).toContain('waiting for another run of the migrations'));
    gate.open();
    await newer;
    await expect(older).rejects.toThrow(/test\/0002-breaking of a newer version/);
  });

  it('does not disturb the other one, which builds an index meanwhile', async () => {
    const url = await createTestDatabase();
    const gate = createGate();
    const migrations = { ...first, '0002-slow': { up: () => gate.pass() }, '0003-index': indexed['0002-index'] };
    const { logger, warnings } = recordingLogger();
    const one = migrate(url, migrations, logger);
    await gate.reached;
    const { logger: otherLogger, messages } = recordingLogger();
    const other = migrate(url, migrations, otherLogger);
    await eventually(() => expect(messages).toContain('waiting for another run of the migrations'));
    gate.open();
    await Promise.all([one, other]);
    expect(warnings).toEqual([]);
    expect(await countDeadlocks(url)).toBe(0);
  });
});

describe('an index that is built concurrently', () => {
  it('lets others write, and waits for a long transaction', async () => {
    const url = await createTestDatabase();
    await migrate(url, first);
    await using holder = await lockingSession(url, "INSERT INTO thing VALUES ('uncommitted')");
    const { logger, warnings } = recordingLogger();
    const migrating = migrate(url, indexed, logger);
    await untilWaiting(url, 'migration', 'virtualxid', '1.5 s');
    await using service = createDatabase<Schema>({ url, applicationName: 'test', logger: silent, ...longTimeout });
    await service.kysely.insertInto('thing').values({ name: 'meanwhile' }).execute();
    await holder.query('COMMIT');
    await migrating;
    expect(warnings).toEqual([]);
    expect(await readIndex(holder)).toMatchObject({ valid: true });
    await holder.query('SET enable_seqscan = off');
    expect((await holder.query('SELECT name FROM thing WHERE name IS NOT NULL ORDER BY name')).rows).toEqual([
      { name: 'meanwhile' },
      { name: 'uncommitted' },
    ]);
  });

  it('is built again after an attempt that failed, and kept if it was only not recorded', async () => {
    const url = await createTestDatabase();
    await migrate(url, first);
    await using holder = await lockingSession(url, "INSERT INTO thing VALUES ('uncommitted')");
    const failing = migrate(url, indexed);
    await untilWaiting(url, 'migration', 'virtualxid');
    await holder.query(
      "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'migration' AND datname = current_database()",
    );
    await expect(failing).rejects.toMatchObject({ code: '57014' });
    await holder.query('COMMIT');
    expect(await readIndex(holder)).toMatchObject({ valid: false });

    await migrate(url, indexed);
    const built = await readIndex(holder);
    expect(built).toMatchObject({ valid: true });

    await holder.query("DELETE FROM test_migration WHERE name = '0002-index'");
    await migrate(url, indexed);
    expect(await readIndex(holder)).toEqual(built);
    expect(await history(holder)).toEqual(['0001-thing', '0002-index']);
  });
});

function statement(text: string): SchemaMigration {
  return { up: async (db: Kysely<unknown>) => void (await sql.raw(text).execute(db)) };
}

function setOf(migrations: MigrationSet['migrations']): MigrationSet[] {
  return [{ name: 'test', migrations }];
}

/** The result may be awaited later. */
function migrate(url: string, migrations: MigrationSet['migrations'], logger = silent): Promise<void> {
  const migrating = migrateDatabase({ url, sets: setOf(migrations), logger });
  migrating.catch(() => undefined);
  return migrating;
}

function recordingLogger() {
  const warnings: Record<string, unknown>[] = [];
  const messages: string[] = [];
  const info = (...entry: unknown[]): void => void messages.push(String(entry.at(-1)));
  return {
    logger: { info, warn: (fields: Record<string, unknown>) => void warnings.push(fields) } as unknown as Logger,
    warnings,
    messages,
  };
}

/** Work that has come to the gate is there until it is opened. */
function createGate() {
  const [arrival, opening] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const pass = (): Promise<void> => {
    arrival.resolve();
    return opening.promise;
  };
  return { reached: arrival.promise, pass, open: opening.resolve };
}

async function openSession(url: string) {
  const pool = new Pool({ connectionString: url, application_name: 'test', max: 1 });
  return {
    query: (text: string) => pool.query<Record<string, unknown>>(text),
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

type Session = Awaited<ReturnType<typeof openSession>>;

/** Is in a transaction with the locks of this statement. */
async function lockingSession(url: string, text: string): Promise<Session> {
  const session = await openSession(url);
  await session.query('BEGIN');
  await session.query(text);
  return session;
}

async function untilWaiting(
  url: string,
  application: 'migration' | 'test',
  event: 'relation' | 'virtualxid',
  atLeast = '0 s',
): Promise<void> {
  await using session = await openSession(url);
  await eventually(async () => {
    const { rows } = await session.query(
      `SELECT FROM pg_stat_activity WHERE application_name = '${application}' AND datname = current_database() AND wait_event_type = 'Lock'
          AND wait_event = '${event}' AND clock_timestamp() - query_start >= '${atLeast}'`,
    );
    expect(rows).toHaveLength(1);
  });
}

async function history(session: Session): Promise<unknown[]> {
  return (await session.query('SELECT name FROM test_migration ORDER BY "timestamp"')).rows.map(({ name }) => name);
}

async function readIndex(session: Session): Promise<unknown> {
  const { rows } = await session.query(
    "SELECT indexrelid AS id, indisvalid AS valid FROM pg_index WHERE indexrelid = 'thing_by_name'::regclass",
  );
  return rows[0];
}
