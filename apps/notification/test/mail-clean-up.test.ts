import { createDatabase, startCleanUps } from '@scheduling/postgres';
import { createMigratedDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { notificationCleanUps } from '../src/clean-ups.ts';
import { migrateNotificationDatabase } from '../src/db/migrate.ts';
import type { NotificationSchema } from '../src/db/schema.ts';

const logger = testLogger('notification-test');

it('deletes the remains of mails finished a month ago as soon as the process starts', async () => {
  const url = await createMigratedDatabase('notification', migrateNotificationDatabase);
  await using database = createDatabase<NotificationSchema>({ url, applicationName: 'test', logger, ...longTimeout });
  const insertFinished = (count: number, ago: string) =>
    sql`
      INSERT INTO mail (crm_id, event_id, about_id, version, template, request_id, state, finished_at)
      SELECT 'crm', gen_random_uuid(), gen_random_uuid(), 1, 'confirmation', 'request', 'sent', now() - ${ago}::interval
        FROM generate_series(1, ${count}::int)`.execute(database.kysely);
  await insertFinished(2_500, '31 days');
  await insertFinished(1, '29 days');
  await using _cleanUp = startCleanUps({ database, logger, cleanUps: notificationCleanUps });
  await eventually(async () => expect(await database.kysely.selectFrom('mail').select('id').execute()).toHaveLength(1));
});

it('deletes what sandboxes have kept for a week, and not the mails', async () => {
  const url = await createMigratedDatabase('notification', migrateNotificationDatabase);
  await using database = createDatabase<NotificationSchema>({ url, applicationName: 'test', logger, ...longTimeout });
  for (const ago of ['8 days', '6 days']) {
    await sql`
      WITH sent AS (
        INSERT INTO mail (crm_id, event_id, about_id, version, template, request_id, state, finished_at, sandbox)
        VALUES ('crm', gen_random_uuid(), gen_random_uuid(), 1, 'confirmation', 'request', 'sent', now(), true) RETURNING crm_id, id
      )
      INSERT INTO sandbox_mail (crm_id, mail_id, recipient, content, sent_at) SELECT crm_id, id, ${ago}, '{}', now() - ${ago}::interval FROM sent`.execute(
      database.kysely,
    );
  }
  await using _cleanUp = startCleanUps({ database, logger, cleanUps: notificationCleanUps });
  await eventually(async () =>
    expect(await database.kysely.selectFrom('sandboxMail').select('recipient').execute()).toEqual([
      { recipient: '6 days' },
    ]),
  );
  expect(await database.kysely.selectFrom('mail').select('id').execute()).toHaveLength(2);
});

it('deletes the organizers of events that ended a month ago', async () => {
  const url = await createMigratedDatabase('notification', migrateNotificationDatabase);
  await using database = createDatabase<NotificationSchema>({ url, applicationName: 'test', logger, ...longTimeout });
  await sql`
    INSERT INTO event_organizer (crm_id, participation_id, address, keep_until)
    SELECT 'crm', gen_random_uuid(), wait, now() + wait::interval FROM unnest(ARRAY['-1 minute', '1 minute']) AS wait`.execute(
    database.kysely,
  );
  await using _cleanUp = startCleanUps({ database, logger, cleanUps: notificationCleanUps });
  await eventually(async () =>
    expect(await database.kysely.selectFrom('eventOrganizer').select('address').execute()).toEqual([
      { address: '1 minute' },
    ]),
  );
});
