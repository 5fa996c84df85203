import { createTestDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { type Generated, sql } from 'kysely';
import { beforeAll, expect, it } from 'vitest';
import { createDatabase, withRows } from '../src/index.ts';

interface Schema {
  entry: { id: Generated<number>; ownerId: string; name: string | null; at: Date; bytes: Buffer; address: string };
}

let url: string;
beforeAll(async () => {
  url = await createTestDatabase();
});

const shared = {
  ownerId: 'one',
  at: new Date('2031-05-05T09:00:00.123Z'),
  bytes: Buffer.from([0, 255]),
  address: '{"zip":"1"}',
};
const stored = { ownerId: 'one', at: shared.at, bytes: shared.bytes, address: { zip: '1' } };

it.each([
  [
    'rows that share values',
    [
      { ...shared, name: 'a' },
      { ...shared, name: null },
    ],
    [
      { ...stored, name: 'a' },
      { ...stored, name: null },
    ],
  ],
  [
    'rows that share none',
    [
      { ...shared, name: 'a' },
      { ownerId: 'two', at: new Date(0), bytes: Buffer.from([1]), address: '{"zip":"2"}', name: 'b' },
    ],
    [
      { ...stored, name: 'a' },
      { ownerId: 'two', at: new Date(0), bytes: Buffer.from([1]), address: { zip: '2' }, name: 'b' },
    ],
  ],
  [
    'equal rows',
    [
      { ...shared, name: null },
      { ...shared, name: null },
    ],
    [
      { ...stored, name: null },
      { ...stored, name: null },
    ],
  ],
  ['a single row', [{ ...shared, name: 'a' }], [{ ...stored, name: 'a' }]],
])('inserts %s, in their order, with the defaults of the other columns', async (_what, rows, expected) => {
  await using database = createDatabase<Schema>({
    url,
    applicationName: 'test',
    logger: testLogger('with-rows-test'),
    ...longTimeout,
  });
  await database.transaction(async (tx) => {
    await sql`CREATE TEMP TABLE entry (id int GENERATED ALWAYS AS IDENTITY, owner_id text, name text, at timestamptz, bytes bytea, address jsonb) ON COMMIT DROP`.execute(
      tx,
    );
    await withRows(tx.insertInto('entry'), rows, { json: ['address'] }).execute();
    expect(await tx.selectFrom('entry').selectAll().orderBy('id').execute()).toEqual(
      expected.map((row, index) => ({ ...row, id: index + 1 })),
    );
  });
});
