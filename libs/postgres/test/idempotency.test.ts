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
  runOnce,
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
            IF request ->> 'outcome' IS NOT NULL THEN RETURN request; END IF;
            INSERT INTO thing VALUES ((request ->> 'id')::uuid);
            RETURN jsonb_build_object('outcome', 'created', 'transaction', pg_current_xact_id()::text);
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
    outcome: string;
    transaction: string;
  }

  /** `outcome`: what the function answers without doing anything. */
  const create = (id: string, outcome?: string, db = database) =>
    callOnce(db, 'crm', {
      call: { name: 'create_thing', request: { crmId: 'crm', id, outcome } as { crmId: string }, locks: id },
      work: async (tx: Kysely<Schema>, answer: Answer) => {
        if (answer.outcome === 'refused') throw new DomainError('staff.owner');
        if (answer.outcome === 'exists') await tx.insertInto('thing').values({ id }).execute();
        return { id, isInTransaction: tx.isTransaction, ...answer };
      },
      keep: (result) => ({ resourceIds: [result.id], created: result.outcome === 'created' }),
      replay: (_db, { resourceIds, created }) =>
        Promise.resolve({ id: resourceIds[0]!, outcome: `${created}`, isInTransaction: false, transaction: '' }),
    });

  it('shares its transaction with others, with keys as without', async () => {
    const before = await keys();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => withKey(randomUUID(), () => create(randomUUID()))),
    );
    expect(new Set(answers.map(({ transaction }) => transaction)).size).toBe(1);
    expect(await keys()).toHaveLength(before.length + 10);
    expect((await create(randomUUID())).outcome).toBe('created');
    expect(await keys()).toHaveLength(before.length + 10);
  });

  it('has one effect with the same key, also in the same transaction, and another key is not affected', async () => {
    const before = await countThings();
    const key = randomUUID();
    const [one, same, other] = await Promise.all(
      [key, key, randomUUID()].map((each) => withKey(each, () => create(randomUUID()))),
    );
    expect(same!.id).toBe(one!.id);
    expect([one!.outcome, same!.outcome].toSorted()).toEqual(['created', 'true']);
    expect(other!.outcome).toBe('created');
    expect(await withKey(key, () => create(randomUUID()))).toMatchObject({ id: one!.id, outcome: 'true' });
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

  it('continues in one transaction with the key if what it would create exists', async () => {
    const [key, id] = [randomUUID(), randomUUID()];
    expect(await withKey(key, () => create(id, 'exists'))).toMatchObject({ id, isInTransaction: true });
    expect(await withKey(key, () => create(randomUUID()))).toMatchObject({ id, outcome: 'false' });
  });

  it('leaves connections to others while many calls of a CRM continue in transactions', async () => {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let inProgress = 0;
    const continued = (id: string) =>
      callOnce(database, 'crm', {
        call: {
          name: 'create_thing',
          request: { crmId: 'crm', id, outcome: 'exists' } as { crmId: string },
          locks: id,
        },
        work: async () => {
          inProgress += 1;
          if (inProgress === 2) begun.resolve();
          await ended.promise;
          return id;
        },
        keep: () => ({ resourceIds: [id], created: false }),
        replay: (_db, { resourceIds }) => Promise.resolve(resourceIds[0]!),
      });
    const calls = Array.from({ length: 20 }, () => withKey(randomUUID(), () => continued(randomUUID())));
    await begun.promise;
    expect((await create(randomUUID())).outcome).toBe('created');
    expect(inProgress).toBe(2);
    ended.resolve();
    expect(await Promise.all(calls)).toHaveLength(20);
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
    await expect(withKey(key, () => create(randomUUID(), 'refused', counted))).rejects.toMatchObject({
      code: 'staff.owner',
    });
    expect(commits).toBe(0);
    expect(await withKey(key, () => create(randomUUID(), undefined, counted))).toMatchObject({ outcome: 'created' });
    expect(commits).toBe(1);
  });
});

describe('work without a key', () => {
  it('stores no key, notifies of its commit, and opens a transaction only if necessary', async () => {
    await using counted = createDatabase<Schema>({
      url: database.pool.options.connectionString!,
      applicationName: 'counted',
      logger,
      ...longTimeout,
    });
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
