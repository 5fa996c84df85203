import type { Database } from '@scheduling/postgres';
import type { Selectable } from 'kysely';
import type { MailTable, NotificationSchema } from '../db/schema.ts';

export type ListedMail = Pick<
  Selectable<MailTable>,
  'crm_id' | 'id' | 'about_id' | 'template' | 'request_id' | 'state' | 'attempts' | 'last_error' | 'created_at' | 'finished_at'
>;

const maxListed = 500;

/** The newest mails in a state, without anything personal. */
export function listMails({ kysely }: Database<NotificationSchema>, state: ListedMail['state']): Promise<ListedMail[]> {
  return kysely
    .selectFrom('mail')
    .select(['crm_id', 'id', 'about_id', 'template', 'request_id', 'state', 'attempts', 'last_error', 'created_at', 'finished_at'])
    .where('state', '=', state)
    .orderBy(state === 'pending' ? 'created_at' : 'finished_at', 'desc')
    .limit(maxListed)
    .execute();
}
