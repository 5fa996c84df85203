import { DomainError } from '@scheduling/errors';
import { createDatabase, type Database, startCleanUps } from '@scheduling/postgres';
import { createMigratedDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateWebhookDatabase } from '../src/db/migrate.ts';
import type { WebhookSchema } from '../src/db/schema.ts';
import { readPage } from '../src/feed/read-page.ts';
import { webhookCleanUps } from '../src/clean-ups.ts';

const logger = testLogger('webhook');
let database: Database<WebhookSchema>;

beforeAll(async () => {
  const url = await createMigratedDatabase('webhook', migrateWebhookDatabase);
  database = createDatabase({ url, applicationName: 'test', logger, ...longTimeout });
});

afterAll(() => database[Symbol.asyncDispose]());

function daysAgo(days: number) {
  return sql<Date>`now() - make_interval(days => ${days})`;
}

/** A CRM whose events happened and were recorded so many days ago. Returns their ids. */
async function createFeed(crmId: string, ages: number[]): Promise<string[]> {
  await database.kysely.insertInto('eventCounter').values({ crmId, lastSequence: 0 }).execute();
  return addToFeed(crmId, ages);
}

async function addToFeed(crmId: string, ages: number[]): Promise<string[]> {
  const { lastSequence } = await database.kysely
    .updateTable('eventCounter')
    .set((row) => ({ lastSequence: row('lastSequence', '+', ages.length) }))
    .where('crmId', '=', crmId)
    .returning('lastSequence')
    .executeTakeFirstOrThrow();
  const common = { crmId, type: 'customer.changed', version: 0, actor: 'service' };
  const rows = ages.map((days, index) => ({
    ...common,
    id: sql<string>`uuidv7(make_interval(days => ${-days}))`,
    subjectId: randomUUID(),
    sequence: lastSequence - ages.length + 1 + index,
    recordedAt: daysAgo(days),
  }));
  const added = await database.kysely.insertInto('event').values(rows).returning(['id', 'sequence']).execute();
  return added.toSorted((one, other) => one.sequence - other.sequence).map(({ id }) => id);
}

/** The sequences of what a reader gets that has read everything up to the event, or why it gets nothing. */
async function readAfter(crmId: string, after: string): Promise<number[] | string> {
  try {
    const { listed } = await readPage(database, { crmId, after, limit: 100, types: [], providerId: null });
    return listed.map((event) => event.sequence);
  } catch (error) {
    if (error instanceof DomainError) return error.code;
    throw error;
  }
}

async function sequencesOf(crmId: string): Promise<number[]> {
  const rows = await database.kysely
    .selectFrom('event')
    .select('sequence')
    .where('crmId', '=', crmId)
    .orderBy('sequence')
    .execute();
  return rows.map(({ sequence }) => sequence);
}

it('events are deleted after 30 days, except for the newest of each CRM', async () => {
  await createFeed('busy', [32, 31, 29, 0]);
  await createFeed('quiet', [90, 60]);
  await using _cleanUp = startCleanUps({ database, logger, cleanUps: webhookCleanUps });
  await eventually(async () => expect([await sequencesOf('busy'), await sequencesOf('quiet')]).toEqual([[3, 4], [2]]));
});

describe('a reader that paused for longer than events are kept', () => {
  it('gets what follows if it had read everything that is gone', async () => {
    const [, read] = await createFeed('paused', [90, 60]);
    expect(await readAfter('paused', read!)).toEqual([]);
    const [unread] = await addToFeed('paused', [20, 10]);
    await using _cleanUp = startCleanUps({ database, logger, cleanUps: webhookCleanUps });
    await eventually(async () => expect(await sequencesOf('paused')).toEqual([3, 4]));
    expect(await readAfter('paused', read!)).toEqual([3, 4]);
    expect(await readAfter('paused', unread!)).toEqual([4]);
  });

  it('learns that it has missed something if it has, whenever the clean-up deleted what', async () => {
    const [first, second, third] = await createFeed('late', [90, 80, 70, 31, 29]);
    const cleanUp = startCleanUps({ database, logger, cleanUps: webhookCleanUps });
    await eventually(async () => expect(await sequencesOf('late')).toEqual([5]));
    await cleanUp[Symbol.asyncDispose]();
    expect(await Promise.all([first, second, third].map((after) => readAfter('late', after!)))).toEqual([
      'events.expired',
      'events.expired',
      'events.expired',
    ]);
    expect(await readAfter('late', 'start')).toEqual([5]);
  });

  it('learns that, too, if the event after which it reads is still there', async () => {
    const [first] = await createFeed('gap', [29, 31, 0]);
    await using _cleanUp = startCleanUps({ database, logger, cleanUps: webhookCleanUps });
    await eventually(async () => expect(await sequencesOf('gap')).toEqual([1, 3]));
    expect(await readAfter('gap', first!)).toBe('events.expired');
  });

  it('is told so only of events of its own CRM', async () => {
    const [old] = await createFeed('other', [90, 80, 0]);
    await createFeed('own', [90, 0]);
    await using _cleanUp = startCleanUps({ database, logger, cleanUps: webhookCleanUps });
    await eventually(async () => expect([await sequencesOf('other'), await sequencesOf('own')]).toEqual([[3], [2]]));
    const [, gone] = await database.kysely
      .selectFrom('removedEvent')
      .select('id')
      .where('crmId', 'in', ['other', 'own'])
      .orderBy('crmId')
      .execute();
    expect(await readAfter('own', gone!.id)).toEqual([2]);
    expect(await readAfter('other', gone!.id)).toBe('events.expired');
    expect(await readAfter('other', old!)).toBe('events.expired');
  });
});

it('the version of a subject is forgotten 30 days after it was gone', async () => {
  const [existing, gone, longGone] = [randomUUID(), randomUUID(), randomUUID()];
  await database.kysely
    .insertInto('latestVersion')
    .values([
      { crmId: 'crm', subjectId: existing, version: 1 },
      { crmId: 'crm', subjectId: gone, version: 2, goneAt: daysAgo(29) },
      { crmId: 'crm', subjectId: longGone, version: 3, goneAt: daysAgo(31) },
    ])
    .execute();
  await using _cleanUp = startCleanUps({ database, logger, cleanUps: webhookCleanUps });
  await eventually(async () => {
    const rows = await database.kysely.selectFrom('latestVersion').select('subjectId').execute();
    expect(rows.map(({ subjectId }) => subjectId).toSorted()).toEqual([existing, gone].toSorted());
  });
});
