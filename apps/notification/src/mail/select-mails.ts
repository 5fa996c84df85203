import { type Kysely, type Selectable, sql } from 'kysely';
import type { MailTable, NotificationSchema } from '../db/schema.ts';

type State = Selectable<MailTable>['state'];

/**
 * What is known of a mail before and after it is written: one that is not written is pending, and nobody has tried to
 * send it.
 */
export function selectMails(db: Kysely<NotificationSchema>) {
  return db.selectFrom((from) =>
    from
      .selectFrom('mail')
      .select([
        'crmId',
        'id',
        'aboutId',
        'version',
        'template',
        'requestId',
        'state',
        'attempts',
        'lastError',
        'createdAt',
        'finishedAt',
      ])
      .unionAll(
        from
          .selectFrom('unwrittenMail')
          .select(['crmId', 'id', 'aboutId', 'version', 'template', 'requestId'])
          .select([
            sql<State>`state`.as('state'),
            sql<number>`0`.as('attempts'),
            sql<string | null>`NULL`.as('lastError'),
            'createdAt',
            sql<Date | null>`NULL::timestamptz`.as('finishedAt'),
          ]),
      )
      .as('mail'),
  );
}
