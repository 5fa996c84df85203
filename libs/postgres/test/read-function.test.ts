import { createTestDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type Database, readFunction } from '../src/index.ts';

interface Schema {
  note: { name: string };
}

interface Answer {
  noteName: string | null;
  connection: number;
  prepared: string[];
}

let database: Database<Schema>;

beforeAll(async () => {
  database = createDatabase<Schema>({
    url: await createTestDatabase(),
    applicationName: 'test',
    logger: testLogger('read-function-test'),
    ...longTimeout,
  });
  await sql
    .raw(`
    CREATE TABLE note (name text PRIMARY KEY);
    INSERT INTO note VALUES ('b'), ('a'), ('c');
    CREATE FUNCTION read_notes(request jsonb) RETURNS TABLE ("noteName" text, connection integer, prepared text[]) LANGUAGE plpgsql STABLE AS $$
    BEGIN
      PERFORM pg_sleep((request ->> 'seconds')::float);
      RETURN QUERY SELECT name, pg_backend_pid(), ARRAY(SELECT statement.name FROM pg_prepared_statements AS statement) FROM note ORDER BY name DESC;
    END $$;`)
    .execute(database.kysely);
});
afterAll(() => database?.[Symbol.asyncDispose]());

function readNotes(seconds = 0, db: Parameters<typeof readFunction>[0] = database.kysely): Promise<Answer[]> {
  const request = { crmId: 'crm', seconds };
  return readFunction<Answer>(db, { name: 'read_notes', request });
}

it('returns the rows in the order and with the names of the function', async () => {
  expect((await readNotes()).map(({ noteName }) => noteName)).toEqual(['c', 'b', 'a']);
});

it('is a statement that Postgres parses once per connection', async () => {
  const [row] = await readNotes();
  expect(row!.prepared).toEqual(['read_notes']);
});

it('waits for no other read of the same CRM', async () => {
  const reads = await Promise.all(Array.from({ length: 3 }, () => readNotes(0.1)));
  expect(new Set(reads.map(([row]) => row!.connection)).size).toBe(3);
});

it('is a part of the transaction in which it is made', async () => {
  const failing = database.transaction(async (tx) => {
    await sql`INSERT INTO note VALUES ('d')`.execute(tx);
    expect((await readNotes(0, tx)).map(({ noteName }) => noteName)).toEqual(['d', 'c', 'b', 'a']);
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await readNotes()).toHaveLength(3);
});

it('rejects with what the database reports, and the connection is used again', async () => {
  await expect(
    readFunction(database.kysely, { name: 'read_nothing', request: { crmId: 'crm' } }),
  ).rejects.toMatchObject({ code: '42883' });
  expect(await readNotes()).toHaveLength(3);
});
