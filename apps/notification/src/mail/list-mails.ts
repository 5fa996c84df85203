import type { Database } from '@scheduling/postgres';
import type { Selectable } from 'kysely';
import type { MailTable, NotificationSchema } from '../db/schema.ts';
import { selectMails } from './select-mails.ts';

export type ListedMail = Pick<
  Selectable<MailTable>,
  | 'crmId'
  | 'id'
  | 'aboutId'
  | 'template'
  | 'requestId'
  | 'state'
  | 'attempts'
  | 'lastError'
  | 'createdAt'
  | 'finishedAt'
>;

const maxListed = 500;

/** The newest mails in a state, without personal data. */
export function listMails({ kysely }: Database<NotificationSchema>, state: ListedMail['state']): Promise<ListedMail[]> {
  return selectMails(kysely)
    .select([
      'crmId',
      'id',
      'aboutId',
      'template',
      'requestId',
      'state',
      'attempts',
      'lastError',
      'createdAt',
      'finishedAt',
    ])
    .where('state', '=', state)
    .orderBy(state === 'pending' ? 'createdAt' : 'finishedAt', 'desc')
    .limit(maxListed)
    .execute();
}
