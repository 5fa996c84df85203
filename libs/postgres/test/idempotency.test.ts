import { DomainError } from '@scheduling/errors';
import { newRequestId, runWithContext } from '@scheduling/runtime';
import { createTestDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  callOnce,
  createDatabase,
  type Database,
  forgetKeys,
  idempotencyCleanUp,
  idempotencyMigrations,
  type IdempotencySchema,
  migrateDatabase,
  startCleanUps,
  transactOnce,
} from '../src/index.ts';

interface Schema extends IdempotencySchema {
  thing: { id: string };
}

const logger = testLogger('idempotency-test');
const things = {
  name: 'test',
  migrations: {
    '0001-things': {
      up: async (db: Kysely<unknown>) => {
        await sql`CREATE TABLE thing (id uuid PRIMARY KEY)`.execute(db);
        await sql
          .raw(`
          CREATE FUNCTION create_thing(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
          BEGIN
            IF request ? 'rejection' THEN RETURN jsonb_build_object('rejection', request -> 'rejection'); END IF;
            INSERT INTO thing VALUES ((request ->> 'id')::uuid);
            RETURN jsonb_build_object('id', request -> 'id', 'created', true, 'transaction', pg_current_xact_id()::text);
          END $$`)
          .execute(db);
      },
    },
  },
};
let database: Database<Schema>;

beforeAll(async () => {
  const url = await createTestDatabase();
  await migrateDatabase({ url, sets: [idempotencyMigrations, things], logger });
  database = createDatabase<Schema>({ url, applicationName: 'test', logger, ...longTimeout });
});
afterAll(() => database[Symbol.asyncDispose]());

const withKey = <Result>(key: string, call: () => Promise<Result>, content = 'content') =>
  runWithContext(
    {
      requestId: newRequestId(),
      idempotency: { key, fingerprint: createHash('sha256').update(content).digest(), isReplayed: false },
    },
    call,
  );

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
  it('is done once, and its response is repeated', async () => {
    const before = await countThings();
    const key = randomUUID();
    const id = await withKey(key, () => makeThing());
    expect(await withKey(key, () => makeThing())).toBe(id);
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
    await expect(withKey(key, () => makeThing())).rejects.toMatchObject({
      category: 'conflict',
      code: 'idempotency_key.in_flight',
    });
    repeated.resolve();
    expect(await withKey(key, () => first.then(() => makeThing()))).toBe(await first);
    expect(await countThings()).toBe(before + 1);
  });

  it('and different content is rejected', async () => {
    const key = randomUUID();
    await withKey(key, () => makeThing());
    await expect(withKey(key, () => makeThing(), 'other')).rejects.toMatchObject({
      category: 'unprocessable',
      code: 'idempotency_key.reused',
    });
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
    const { rows } = await sql<{
      text: string;
    }>`SELECT encode(convert_to(idempotency_key::text, 'UTF8') || key_hash, 'escape') AS text FROM idempotency_key`.execute(
      database.kysely,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { text } of rows) expect(text).not.toContain('example.com');
    await database.transaction((tx) => forgetKeys(tx, 'another', [id, other]));
    await database.transaction((tx) => forgetKeys(tx, 'crm', [id]));
    const left = (await keys()).flatMap(({ resourceIds: ids }) => ids);
    expect(left).toContain(other);
    expect(left).not.toContain(id);
  });
});

describe('the call of a function', () => {
  interface Answer {
    id?: string;
    created?: boolean;
    /** Of what it created just now. */
    transaction?: string;
    /** It did nothing. */
    rejection?: string;
  }

  const create = (id: string, rejection?: string, db = database) => {
    const request = { crmId: 'crm', id, rejection };
    const replay = (kept: { id: string; created: boolean }) => Promise.resolve<Answer>(kept);
    return callOnce<Answer>(db, { name: 'create_thing', request, locks: id }, replay);
  };

  it('shares its transaction with others, with keys as without', async () => {
    const before = await keys();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => withKey(randomUUID(), () => create(randomUUID()))),
    );
    expect(new Set(answers.map(({ transaction }) => transaction)).size).toBe(1);
    expect(await keys()).toHaveLength(before.length + 10);
    expect((await create(randomUUID())).transaction).toBeDefined();
    expect(await keys()).toHaveLength(before.length + 10);
  });

  it('has one effect with the same key, also in the same transaction, and another key is not affected', async () => {
    const before = await countThings();
    const key = randomUUID();
    const [one, same, other] = await Promise.all(
      [key, key, randomUUID()].map((each) => withKey(each, () => create(randomUUID()))),
    );
    expect(same!.id).toBe(one!.id);
    expect([one!.transaction, same!.transaction].filter(Boolean)).toHaveLength(1);
    expect(other!.transaction).toBeDefined();
    expect(await withKey(key, () => create(randomUUID()))).toEqual({ id: one!.id, created: true });
    await expect(withKey(key, () => create(randomUUID()), 'other')).rejects.toMatchObject({
      code: 'idempotency_key.reused',
    });
    expect(await countThings()).toBe(before + 2);
  });

  it('is rejected while work with the same key is in progress, whichever way that is done', async () => {
    const key = randomUUID();
    const [inserted, repeated] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = withKey(key, () =>
      makeThing(async () => {
        inserted.resolve();
        await repeated.promise;
      }),
    );
    await inserted.promise;
    await expect(withKey(key, () => create(randomUUID()))).rejects.toMatchObject({
      category: 'conflict',
      code: 'idempotency_key.in_flight',
    });
    repeated.resolve();
    const id = await first;
    expect(await withKey(key, () => create(randomUUID()))).toMatchObject({ id });
  });

  it('leaves no key if it did nothing, and notifies of its commit only if it did', async () => {
    await using counted = createDatabase<Schema>({
      url: database.pool.options.connectionString!,
      applicationName: 'counted',
      logger,
      ...longTimeout,
    });
    let commits = 0;
    counted.onCommit(() => (commits += 1));
    const key = randomUUID();
    expect(await withKey(key, () => create(randomUUID(), 'full', counted))).toEqual({ rejection: 'full' });
    expect(commits).toBe(0);
    expect(await withKey(key, () => create(randomUUID(), undefined, counted))).toMatchObject({ created: true });
    expect(commits).toBe(1);
  });
});

describe('work without a key', () => {
  it('stores no key, and notifies of its commit', async () => {
    await using counted = createDatabase<Schema>({
      url: database.pool.options.connectionString!,
      applicationName: 'counted',
      logger,
      ...longTimeout,
    });
    let commits = 0;
    counted.onCommit(() => (commits += 1));
    const before = await keys();
    await transactOnce(counted, 'crm', newThing());
    expect(commits).toBe(1);
    expect(await keys()).toEqual(before);
  });
});

describe('the clean-up', () => {
  it('deletes only rows older than 72 hours, in batches and concurrently with others', async () => {
    await database.kysely.deleteFrom('idempotencyKey').execute();
    await sql`
      INSERT INTO idempotency_key (crm_id, key_hash, fingerprint, resource_ids, created, created_at)
      SELECT 'crm', sha256(n::text::bytea), 'x', '{}', true, now() - make_interval(hours => CASE WHEN n <= 2500 THEN 72 ELSE 71 END)
        FROM generate_series(1, 2600) AS n`.execute(database.kysely);
    const options = { database, logger, cleanUps: [idempotencyCleanUp] };
    await using _first = startCleanUps(options);
    await using _second = startCleanUps(options);
    await eventually(async () => expect(await keys()).toHaveLength(100));
  });
});
