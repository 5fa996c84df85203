import { forgetKeys } from '@scheduling/postgres';
import { type SelectQueryBuilder, sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

/** How long the last mails wait at most for one whose delivery does not end. */
const longestDelivery = sql`interval '1 minute'`;

/**
 * Deletes the mails that the query selects. One that a process may be handing to the mail server is deleted when that is
 * over (record-outcome.ts). Returns whether there are such mails: the last mails must
 * not be stored before.
 */
export async function deleteMails(
  tx: Transaction<NotificationSchema>,
  crmId: string,
  mails: SelectQueryBuilder<NotificationSchema, 'mail', object>,
): Promise<boolean> {
  const found = await mails
    .where('crmId', '=', crmId)
    .where('erasureId', 'is', null)
    .select([
      'id',
      sql<boolean>`state = 'pending' AND lease IS NOT NULL AND coalesce(erased_at > now() - ${longestDelivery}, true)`.as(
        'isDelivered',
      ),
    ])
    .forUpdate()
    .execute();
  const { delivered = [], deleted = [] } = Object.groupBy(found, ({ isDelivered }) =>
    isDelivered ? 'delivered' : 'deleted',
  );
  await tx
    .updateTable('mail')
    .set({ erasedAt: sql<Date>`now()` })
    .where('crmId', '=', crmId)
    .where(sql<boolean>`id = ANY(${delivered.map(({ id }) => id)}::uuid[])`)
    .where('erasedAt', 'is', null)
    .execute();
  const ids = deleted.map(({ id }) => id);
  await tx
    .deleteFrom('mail')
    .where('crmId', '=', crmId)
    .where(sql<boolean>`id = ANY(${ids}::uuid[])`)
    .execute();
  await forgetKeys(tx, crmId, ids);
  return delivered.length > 0;
}
