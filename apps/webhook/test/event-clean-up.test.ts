import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrateWebhookDatabase } from '../src/db/migrate.ts';
import type { WebhookSchema } from '../src/db/schema.ts';
import { startEventCleanUp } from '../src/feed/start-event-clean-up.ts';

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

/** A CRM whose events were recorded so many days ago. */
async function createFeed(crmId: string, ages: number[]): Promise<void> {
  const common = { crmId, type: 'customer.changed', version: 0, actor: 'service' };
  await database.kysely.insertInto('eventCounter').values({ crmId, lastSequence: ages.length }).execute();
  const rows = ages.map((days, index) => ({ ...common, id: randomUUID(), subjectId: randomUUID(), sequence: index + 1, recordedAt: daysAgo(days) }));
  await database.kysely.insertInto('event').values(rows).execute();
}

async function sequencesOf(crmId: string): Promise<number[]> {
  const rows = await database.kysely.selectFrom('event').select('sequence').where('crmId', '=', crmId).orderBy('sequence').execute();
  return rows.map(({ sequence }) => sequence);
}

it('events are deleted after 30 days, except for the newest of each CRM', async () => {
  await createFeed('busy', [32, 31, 29, 0]);
  await createFeed('quiet', [90, 60]);
  await using _cleanUp = startEventCleanUp({ database, logger });
  await eventually(async () => expect([await sequencesOf('busy'), await sequencesOf('quiet')]).toEqual([[3, 4], [2]]));
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
  await using _cleanUp = startEventCleanUp({ database, logger });
  await eventually(async () => {
    const rows = await database.kysely.selectFrom('latestVersion').select('subjectId').execute();
    expect(rows.map(({ subjectId }) => subjectId).toSorted()).toEqual([existing, gone].toSorted());
  });
});
