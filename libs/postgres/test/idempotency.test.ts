import { DomainError } from '@scheduling/errors';
import { newRequestId, runWithContext } from '@scheduling/runtime';
import { createTestDatabase, eventually, testLogger } from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createDatabase,
  type Database,
  forgetKeys,
  idempotencyMigrations,
  type IdempotencySchema,
  migrateDatabase,
  runOnce,
  startKeySweeper,
  transactOnce,
} from '../src/index.ts';

interface Schema extends IdempotencySchema {
  thing: { id: string };
}

const logger = testLogger('idempotency-test');
const things = {
  name: 'test',
  migrations: {
    '1-things': {
      up: async (db: Kysely<unknown>) => {
        await sql`CREATE TABLE thing (id uuid PRIMARY KEY)`.execute(db);
      },
    },
  },
};
let database: Database<Schema>;

beforeAll(async () => {
  const url = await createTestDatabase();
  await migrateDatabase({ url, sets: [idempotencyMigrations, things], logger });
  database = createDatabase<Schema>({ url, applicationName: 'test', logger });
});
afterAll(() => database[Symbol.asyncDispose]());

const withKey = <Result>(key: string, call: () => Promise<Result>, content = 'content') =>
  runWithContext({ requestId: newRequestId(), idempotency: { key, fingerprint: createHash('sha256').update(content).digest() } }, call);

/** Inserts a thing, and then does something before the commit. */
const newThing = (meanwhile: () => Promise<void> = () => Promise.resolve()) => ({
  work: async (db: Kysely<Schema>) => {
    const id = randomUUID();
    await db.insertInto('thing').values({ id }).execute();
    await meanwhile();
    return id;
  },
  keep: (id: string) => ({ resourceIds: [id], created: true }),
  replay: (_db: Kysely<Schema>, { resourceIds }: { resourceIds: string[] }) => Promise.resolve(resourceIds[0]!),
});

const makeThing = (meanwhile?: () => Promise<void>) => transactOnce(database, 'crm', newThing(meanwhile));
const countThings = async () => (await database.kysely.selectFrom('thing').select('id').execute()).length;
const keys = () => database.kysely.selectFrom('idempotencyKey').selectAll().orderBy('createdAt').execute();

describe('work with a key', () => {
  it.each([
    { name: 'in a transaction', make: () => transactOnce(database, 'crm', newThing()) },
    { name: 'of one statement', make: () => runOnce(database, 'crm', newThing()) },
  ])('$name is done once, and its response is repeated', async ({ make }) => {
    const before = await countThings();
    const key = randomUUID();
    const id = await withKey(key, make);
    expect(await withKey(key, make)).toBe(id);
    expect(await countThings()).toBe(before + 1);
  });

  it('that arrives while the first is in progress is rejected immediately, and does nothing', async () => {
    const before = await countThings();
    const key = randomUUID();
    const [inserted, repeated] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = withKey(key, () =>
      makeThing(async () => {
        inserted.resolve();
        await repeated.promise;
      }),
    );
    await inserted.promise;
    await expect(withKey(key, () => makeThing())).rejects.toMatchObject({ category: 'conflict', code: 'idempotency_key.in_flight' });
    repeated.resolve();
    expect(await withKey(key, () => first.then(() => makeThing()))).toBe(await first);
    expect(await countThings()).toBe(before + 1);
  });

  it('and different content is rejected', async () => {
    const key = randomUUID();
    await withKey(key, () => makeThing());
    await expect(withKey(key, () => makeThing(), 'other')).rejects.toMatchObject({ category: 'unprocessable', code: 'idempotency_key.reused' });
  });

  it('leaves neither its effect nor the key if it fails', async () => {
    const before = await countThings();
    const key = randomUUID();
    const failed = withKey(key, () => makeThing(() => Promise.reject(new DomainError('staff.owner'))));
    await expect(failed).rejects.toMatchObject({ code: 'staff.owner' });
    expect(await countThings()).toBe(before);
    await withKey(key, () => makeThing(), 'other');
    expect(await countThings()).toBe(before + 1);
  });

  it('is stored without the key itself, and deleted with its resource', async () => {
    const key = `person-${randomUUID()}@example.com`;
    const id = await withKey(key, () => makeThing());
    const other = await withKey(randomUUID(), () => makeThing());
    const { rows } = await sql<{ text: string }>`SELECT encode(convert_to(idempotency_key::text, 'UTF8') || key_hash, 'escape') AS text FROM idempotency_key`.execute(database.kysely);
    expect(rows.length).toBeGreaterThan(0);
    for (const { text } of rows) expect(text).not.toContain('example.com');
    await database.transaction((tx) => forgetKeys(tx, 'another', [id, other]));
    await database.transaction((tx) => forgetKeys(tx, 'crm', [id]));
    const left = (await keys()).flatMap(({ resourceIds: ids }) => ids);
    expect(left).toContain(other);
    expect(left).not.toContain(id);
  });
});

describe('work without a key', () => {
  it('stores no key, notifies of its commit, and opens a transaction only if necessary', async () => {
    await using counted = createDatabase<Schema>({ url: database.pool.options.connectionString!, applicationName: 'counted', logger });
    let commits = 0;
    counted.onCommit(() => (commits += 1));
    const before = await keys();
    const seen: boolean[] = [];
    const work = {
      work: async (db: Kysely<Schema>) => {
        seen.push(db.isTransaction);
        await sql`SELECT 1`.execute(db);
      },
      keep: () => ({ resourceIds: [], created: true }),
      replay: () => Promise.reject(new Error('nothing to replay')),
    };
    await runOnce(counted, 'crm', work);
    await transactOnce(counted, 'crm', work);
    expect(seen).toEqual([false, true]);
    expect(commits).toBe(2);
    expect(await keys()).toEqual(before);
  });
});

describe('the sweeper', () => {
  it('deletes only rows older than 72 hours, in batches and concurrently with others', async () => {
    await database.kysely.deleteFrom('idempotencyKey').execute();
    await sql`
      INSERT INTO idempotency_key (crm_id, key_hash, fingerprint, resource_ids, created, created_at)
      SELECT 'crm', sha256(n::text::bytea), 'x', '{}', true, now() - make_interval(hours => CASE WHEN n <= 2500 THEN 72 ELSE 71 END)
        FROM generate_series(1, 2600) AS n`.execute(database.kysely);
    await using _first = startKeySweeper({ database, logger });
    await using _second = startKeySweeper({ database, logger });
    await eventually(async () => expect(await keys()).toHaveLength(100));
  });
});
