import type { MailFailed } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import type { Database } from '@scheduling/postgres';
import type { NotificationSchema } from '../src/db/schema.ts';

/** The events about mails that were given up. */
export async function failures({ kysely }: Database<NotificationSchema>): Promise<MailFailed[]> {
  const rows = await kysely
    .selectFrom('outbox')
    .select('data')
    .where('subject', '=', events.mailFailed.subject)
    .orderBy('id')
    .execute();
  return rows.map(({ data }) => events.mailFailed.fromJson(data!));
}

/** The ids of the mails that are reported as failed, each as often as it is. */
export async function reportedFailures(database: Database<NotificationSchema>): Promise<string[]> {
  return (await failures(database)).map(({ mailId }) => mailId);
}
