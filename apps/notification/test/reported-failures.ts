import { MailFailed } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import type { Database } from '@scheduling/postgres';
import type { NotificationSchema } from '../src/db/schema.ts';

/** The ids of the mails that are reported as failed, each as often as it is. */
export async function reportedFailures({ kysely }: Database<NotificationSchema>): Promise<string[]> {
  const rows = await kysely.selectFrom('outbox').select('payload').where('type', '=', events.mailFailed.type).orderBy('id').execute();
  return rows.map(({ payload }) => MailFailed.decode(payload).mailId);
}
