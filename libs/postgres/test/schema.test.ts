import { createTestDatabase, eventually, testLogger } from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { Client } from 'pg';
import { expect, it } from 'vitest';
import {
  createDatabase,
  inspectDatabase,
  migrateDatabase,
  type MigrationSet,
  type SchemaMigration,
} from '../src/index.ts';

interface Schema {
  thing: { name: string; color?: string };
}

const logger = testLogger('schema-test');

const createThing: SchemaMigration = {
  up: (db: Kysely<unknown>) => run(db, 'CREATE TABLE thing (name text, old_name text)'),
};
const addColor: SchemaMigration = { up: (db: Kysely<unknown>) => run(db, 'ALTER TABLE thing ADD COLUMN color text') };
const dropOldName: SchemaMigration = {
  breaking: true,
  up: (db: Kysely<unknown>) => run(db, 'ALTER TABLE thing DROP COLUMN old_name'),
};

const first = version({ '0001-thing': createThing });
const expanded = version({ '0001-thing': createThing, '0002-color': addColor });
const contracted = version({ '0001-thing': createThing, '0002-color': addColor, '0003-no-old-name': dropOldName });

it('is older than the code: nothing is read or written until the migrations have run, and then everything works', async () => {
  const url = await createTestDatabase();
  await using database = open(url, first);
  await expect(database.checkSchema()).rejects.toMatchObject({ category: 'unavailable', code: 'database.unavailable' });
  await expect(database.transaction((tx) => sql`CREATE TABLE other (id int)`.execute(tx))).rejects.toMatchObject({
    code: 'database.unavailable',
  });
  await expect(database.ping()).resolves.toBeUndefined();
  await migrateDatabase({ url, sets: first, logger });
  await eventually(() => database.checkSchema());
  expect(await tableNames(url)).not.toContain('other');
});

it('lacks a single migration of the code', async () => {
  const url = await createTestDatabase();
  await migrateDatabase({ url, sets: first, logger });
  await using database = open(url, expanded);
  await expect(database.checkSchema()).rejects.toMatchObject({ code: 'database.unavailable' });
});

it('is newer than the code, which works with it and leaves it unchanged', async () => {
  const url = await createTestDatabase();
  await migrateDatabase({ url, sets: expanded, logger });
  await Promise.all([migrateDatabase({ url, sets: first, logger }), migrateDatabase({ url, sets: expanded, logger })]);
  await using database = open(url, first);
  await expect(database.checkSchema()).resolves.toBeUndefined();
  await database.kysely.insertInto('thing').values({ name: 'kept', color: 'red' }).execute();
});

it('was made in dated steps that are one migration today, and takes further ones', async () => {
  const url = await createTestDatabase();
  const steps = version({ '2026-11-21-thing': createThing, '2026-11-22-color': addColor });
  await migrateDatabase({ url, sets: steps, logger });
  const addSize: SchemaMigration = { up: (db: Kysely<unknown>) => run(db, 'ALTER TABLE thing ADD COLUMN size int') };
  const all: SchemaMigration = {
    up: (db: Kysely<unknown>) => run(db, 'CREATE TABLE thing (name text, old_name text, color text)'),
  };
  const folded = version({ '2026-11-21-thing': all, '0001-size': addSize });
  await migrateDatabase({ url, sets: folded, logger });
  expect(await inspectDatabase(url, folded)).toMatchObject({ missing: [], newer: [], breaking: [] });
  expect(await inspectDatabase(url, steps)).toMatchObject({ missing: [], newer: ['test/0001-size'], breaking: [] });
});

it('has a breaking migration that the code knows', async () => {
  const url = await createTestDatabase();
  await Promise.all([
    migrateDatabase({ url, sets: contracted, logger }),
    migrateDatabase({ url, sets: contracted, logger }),
  ]);
  await using database = open(url, contracted);
  await migrateDatabase({ url, sets: contracted, logger });
  await expect(database.checkSchema()).resolves.toBeUndefined();
});

it('has a breaking migration that the code does not know: the code’s migrations refuse to run', async () => {
  const url = await createTestDatabase();
  await migrateDatabase({ url, sets: contracted, logger });
  const before = await tableNames(url);
  await expect(migrateDatabase({ url, sets: [...first, ...other], logger })).rejects.toThrow(
    /test\/0003-no-old-name of a newer version/,
  );
  expect(await tableNames(url)).toEqual(before);
});

it('does not record a breaking migration that failed', async () => {
  const url = await createTestDatabase();
  const failing: SchemaMigration = {
    breaking: true,
    up: (db: Kysely<unknown>) => run(db, 'ALTER TABLE nowhere DROP COLUMN name'),
  };
  await expect(
    migrateDatabase({ url, sets: version({ '0001-thing': createThing, '0002-failing': failing }), logger }),
  ).rejects.toThrow(/nowhere/);
  await expect(migrateDatabase({ url, sets: first, logger })).resolves.toBeUndefined();
});

it('is read on a connection whose caller gives up meanwhile, and which then serves others', async () => {
  const url = await createTestDatabase();
  await migrateDatabase({ url, sets: first, logger });
  await using database = createDatabase<Schema>({
    url,
    applicationName: 'reading',
    migrations: first,
    maxConnections: 1,
    logger,
  });
  await using admin = createDatabase({ url, applicationName: 'test', logger });
  const reading = async () => {
    const { rows } = await sql<{
      pid: number;
    }>`SELECT pid FROM pg_stat_activity WHERE application_name = 'reading' AND wait_event_type = 'Lock'`.execute(
      admin.kysely,
    );
    return rows[0]?.pid;
  };
  const select = () => database.kysely.selectFrom('thing').selectAll().execute();
  const reasons = await admin.transaction(async (tx) => {
    await sql`LOCK TABLE test_migration`.execute(tx);
    const ended = select();
    const pid = await eventually(async () => (await reading()) ?? expect.unreachable());
    // Waits for the only connection, until the end of the first one makes room for it.
    const givenUp = select();
    // The first one may be rejected before its end is answered.
    const settled = Promise.allSettled([ended, givenUp]);
    await sql`SELECT pg_terminate_backend(${pid})`.execute(admin.kysely);
    return settled;
  });
  expect(reasons).toMatchObject([
    { status: 'rejected' },
    { status: 'rejected', reason: { message: expect.stringContaining('timeout') } },
  ]);
  expect(await select()).toEqual([]);
});

const other: MigrationSet[] = [
  {
    name: 'other',
    migrations: { '0001-other': { up: (db: Kysely<unknown>) => run(db, 'CREATE TABLE other (id int)') } },
  },
];

function version(migrations: MigrationSet['migrations']): MigrationSet[] {
  return [{ name: 'test', migrations }];
}

function open(url: string, migrations: MigrationSet[]) {
  return createDatabase<Schema>({ url, applicationName: 'test', migrations, logger });
}

async function run(db: Kysely<unknown>, statement: string): Promise<void> {
  await sql.raw(statement).execute(db);
}

async function tableNames(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      "SELECT relname AS name FROM pg_class WHERE relkind = 'r' ORDER BY relname",
    );
    return rows.map(({ name }) => name);
  } finally {
    await client.end();
  }
}
