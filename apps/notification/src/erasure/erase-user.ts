import { sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

/**
 * Removes every mail of a user and prevents new ones from being stored. Storing one (store-mail.sql) takes the same
 * lock, so a mail is either stored in time to be removed, or not at all.
 */
export async function eraseUser(
  tx: Transaction<NotificationSchema>,
  { crmId, userId }: { crmId: string; userId: string },
): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`user ${crmId} ${userId}`}, 0))`.execute(tx);
  await tx
    .insertInto('erasedUser')
    .values({ crmId, userId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await tx.deleteFrom('mail').where('crmId', '=', crmId).where('userId', '=', userId).execute();
}
