import { sql } from 'kysely';
import type { CalendarDependencies } from '../dependencies.ts';
import { type CustomerId, lockCustomer } from './lock-customer.ts';

/**
 * Forgets which reference a customer has, before the customer service changes it, and accepts no older copy any more.
 * It is still shown until the next copy comes. Bookings hold the customer's row FOR KEY SHARE, so this waits for those
 * that have found it by the reference; those that come later do not find it. A customer whom calendar does not know
 * gets a row, so that a copy which is being fetched at this moment is not stored either. Returns the version that the
 * change must have: the given one, or a later one if calendar has known a later one.
 */
export function forgetReference(
  { database }: CalendarDependencies,
  customer: CustomerId & { version: number },
): Promise<number> {
  return database.transaction(async (tx) => {
    await lockCustomer(tx, customer);
    const { requiredVersion } = await tx
      .updateTable('customer')
      .set({
        referenceKnown: false,
        requiredVersion: sql<number>`greatest(required_version, version + 1, ${customer.version}::integer)`,
        refreshedAt: sql<Date>`clock_timestamp()`,
      })
      .where('crmId', '=', customer.crmId)
      .where('id', '=', customer.customerId)
      .returning('requiredVersion')
      .executeTakeFirstOrThrow();
    return requiredVersion;
  });
}
