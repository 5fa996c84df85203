import { sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

export interface CustomerKey {
  crmId: string;
  customerId: string;
}

/**
 * Erasing a customer and storing a mail to them (store-mail.sql) are mutually exclusive until the transaction ends, so
 * a mail is either stored in time to be erased, or not stored because its customer is erased.
 */
export async function lockCustomer(
  tx: Transaction<NotificationSchema>,
  { crmId, customerId }: CustomerKey,
): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`customer ${crmId} ${customerId}`}, 0))`.execute(tx);
}
