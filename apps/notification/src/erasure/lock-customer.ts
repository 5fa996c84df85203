import { type Kysely, sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

export interface CustomerKey {
  crmId: string;
  customerId: string;
}

/**
 * Storing a mail and erasing its customer are mutually exclusive until the transaction ends, so a mail is either stored in time to be erased, or
 * not stored because its customer is erased.
 */
export async function lockCustomer(tx: Transaction<NotificationSchema>, mode: 'shared' | 'exclusive', key: CustomerKey): Promise<void> {
  const lock = sql.raw(mode === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock');
  await sql`SELECT ${lock}(hashtextextended(${`customer ${key.crmId} ${key.customerId}`}, 0))`.execute(tx);
}

export async function isErased(db: Kysely<NotificationSchema>, { crmId, customerId }: CustomerKey): Promise<boolean> {
  const row = await db
    .selectFrom('erasedCustomer')
    .select('customerId')
    .where('crmId', '=', crmId)
    .where('customerId', '=', customerId)
    .executeTakeFirst();
  return row !== undefined;
}
