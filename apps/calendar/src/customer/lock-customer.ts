import type { Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';

export interface CustomerId {
  crmId: string;
  /** Of a participant who was embedded in an appointment, the id of the participation. */
  customerId: string;
}

/**
 * Bookings hold the customer FOR KEY SHARE, so this waits for those in progress and blocks all others. An unknown
 * customer gets a row to lock.
 */
export async function lockCustomer(tx: Transaction<CalendarSchema>, { crmId, customerId }: CustomerId): Promise<void> {
  await tx
    .insertInto('customer')
    .values({ crmId, id: customerId, version: 0 })
    .onConflict((conflict) => conflict.columns(['crmId', 'id']).doNothing())
    .execute();
  await tx
    .selectFrom('customer')
    .select('id')
    .where('crmId', '=', crmId)
    .where('id', '=', customerId)
    .forUpdate()
    .execute();
}
