import { type Kysely, sql } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type CustomerId, lockCustomer } from './lock-customer.ts';

/**
 * Whether a booking has been made for a provisional customer, of which the copy is stored with the booking
 * (add-prepared-customer.sql).
 */
export async function isBooked(db: Kysely<CalendarSchema>, { crmId, customerId }: CustomerId): Promise<boolean> {
  const copy = await db
    .selectFrom('customer')
    .select('id')
    .where('crmId', '=', crmId)
    .where('id', '=', customerId)
    .where('reference', 'is not', null)
    .executeTakeFirst();
  return copy !== undefined;
}

/**
 * From now on nobody can book for a provisional customer, unless a booking has been made: then nothing changes. Waits
 * for a booking that is being made. Like that of an erased customer, the row stays as a tombstone. Returns whether the
 * customer is excluded.
 */
export async function excludeCustomer({ database }: CalendarDependencies, customer: CustomerId): Promise<boolean> {
  if (await isBooked(database.kysely, customer)) return false;
  return database.transaction(async (tx) => {
    await lockCustomer(tx, customer);
    const { numUpdatedRows } = await tx
      .updateTable('customer')
      .set({ erasedAt: sql<Date>`coalesce(erased_at, clock_timestamp())` })
      .where('crmId', '=', customer.crmId)
      .where('id', '=', customer.customerId)
      .where('reference', 'is', null)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  });
}
