import { createTestDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { callFunction, createDatabase } from '../src/index.ts';

it('calls that wait at the same moment share a transaction, up to a number of characters', async () => {
  const url = await createTestDatabase();
  await using database = createDatabase<object>({
    url,
    applicationName: 'test',
    logger: testLogger('large-calls-test'),
    ...longTimeout,
  });
  await sql`
    CREATE FUNCTION transaction_of(request jsonb) RETURNS jsonb LANGUAGE sql VOLATILE AS $$ SELECT to_jsonb(pg_current_xact_id()::text) $$`.execute(
    database.kysely,
  );
  const transactionOf = (characters: number) => {
    const request = { crmId: 'crm', text: 'a'.repeat(characters) };
    return callFunction<string>(database.kysely, { name: 'transaction_of', request, locks: '' });
  };
  const countTransactions = async (sizes: number[]) => new Set(await Promise.all(sizes.map(transactionOf))).size;

  expect(await countTransactions([10, 20, 30, 40])).toBe(1);
  expect(await countTransactions([40_000, 40_000, 40_000, 40_000])).toBe(2);
  expect(await countTransactions([500_000, 10, 500_000])).toBe(3);
});
