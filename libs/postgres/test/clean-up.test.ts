import { createTestDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ago, type CleanUp, createDatabase, type Database, startCleanUps } from '../src/index.ts';

interface Schema {
  oldThing: { id: number; createdAt: Date; isKept: boolean };
}

const logger = testLogger('clean-up-test');
const everyMs = 60 * 60 * 1_000;
const oldThings: CleanUp<Schema> = { table: 'oldThing', column: 'createdAt', before: ago('30 days'), everyMs };
let database: Database<Schema>;

beforeAll(async () => {
  const url = await createTestDatabase();
  database = createDatabase<Schema>({ url, applicationName: 'test', logger, ...longTimeout });
  await sql`CREATE TABLE old_thing (id int PRIMARY KEY, created_at timestamptz NOT NULL, is_kept boolean NOT NULL)`.execute(
    database.kysely,
  );
});
afterAll(() => database[Symbol.asyncDispose]());

beforeEach(async () => {
  await sql`TRUNCATE old_thing`.execute(database.kysely);
  await sql`
    INSERT INTO old_thing (id, created_at, is_kept)
    SELECT n, now() - make_interval(days => CASE WHEN n <= 2500 THEN 31 ELSE 29 END), n % 10 = 0
      FROM generate_series(1, 2600) AS n`.execute(database.kysely);
});

async function countThings(): Promise<number> {
  const { count } = await database.kysely
    .selectFrom('oldThing')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

it('deletes old rows in batches, beside others that do the same', async () => {
  await using _first = startCleanUps({ database, logger, cleanUps: [oldThings] });
  await using _second = startCleanUps({ database, logger, cleanUps: [oldThings] });
  await eventually(async () => expect(await countThings()).toBe(100));
});

it('deletes only the rows that it is about', async () => {
  const cleanUps = [{ ...oldThings, where: sql<boolean>`NOT is_kept` }];
  await using _cleanUps = startCleanUps({ database, logger, cleanUps });
  await eventually(async () => expect(await countThings()).toBe(350));
});

it('waits neither for rows that others have locked, nor for another clean-up', async () => {
  const stuck = Promise.withResolvers<number>();
  const removal: CleanUp<Schema> = { name: 'a removal', remove: () => stuck.promise, everyMs };
  await database.transaction(async (tx) => {
    await tx.selectFrom('oldThing').select('id').where('id', '=', 1).forUpdate().execute();
    const cleanUps = startCleanUps({ database, logger, cleanUps: [removal, oldThings] });
    await eventually(async () => expect(await countThings()).toBe(101));
    stuck.resolve(0);
    await cleanUps[Symbol.asyncDispose]();
  });
});
