import { CustomerChange } from '@scheduling/contracts/events/v1';
import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import type { Database } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import { customerChanged } from './customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { type CustomerId, requireCustomer } from './find-customer.ts';

// A booking may bring its customer, who is to exist only if the booking is made. The customer is stored before
// (prepare-customer.ts), so that nobody else gets the reference, and is provisional until calendar says that the
// booking was made, or can never be made. Its content does not change until then.

/**
 * The provisional customer exists if calendar has booked for it. Rejects with `customer.not_found` if it has not, or
 * not yet.
 */
export async function settleIfBooked(
  { database, copies }: CustomerDependencies,
  { crmId, id }: CustomerId,
): Promise<void> {
  const { booked } = await copies.getBooked({ crmId, customerId: id });
  if (!booked) throw new DomainError('customer.not_found');
  await settleCustomer(database, { crmId, id });
}

/**
 * The provisional customer exists from now on, or never: calendar has booked for it, or excludes that it ever does. A
 * booking that was about to be made prepares the reference again. Returns whether it exists.
 */
export async function decideCustomer(
  { database, copies }: CustomerDependencies,
  { crmId, id }: CustomerId,
): Promise<boolean> {
  const { booked } = await copies.excludeCustomer({ crmId, customerId: id });
  if (booked) return (await undefinedIfNotFound(settleCustomer(database, { crmId, id }))) !== undefined;
  await dropCustomer(database, { crmId, id });
  return false;
}

/**
 * The event names whoever sent the booking. Returns the customer, also if it has been settled before. Rejects with
 * `customer.not_found`.
 */
export async function settleCustomer(
  database: Database<CustomerSchema>,
  { crmId, id }: CustomerId,
): Promise<CustomerRow> {
  const settled = await database.transaction(async (tx) => {
    const customer = await tx
      .updateTable('customer')
      .set({
        version: 1,
        provisionalUntil: null,
        preparedBy: null,
        createdAt: sql<Date>`now()`,
        updatedAt: sql<Date>`now()`,
      })
      .where('crmId', '=', crmId)
      .where('id', '=', id)
      .where('provisionalUntil', 'is not', null)
      .returningAll()
      .returning(sql<string>`old.prepared_by`.as('actor'))
      .executeTakeFirst();
    if (customer === undefined) return undefined;
    const { actor, ...row } = customer;
    await appendEvent(tx, events.customerChanged, { ...customerChanged(row, CustomerChange.CREATED), actor });
    return row;
  });
  return settled ?? requireCustomer(database.kysely, { crmId, id });
}

/** Nothing, for a customer who exists. */
export async function dropCustomer({ kysely }: Database<CustomerSchema>, { crmId, id }: CustomerId): Promise<void> {
  await kysely
    .deleteFrom('customer')
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('provisionalUntil', 'is not', null)
    .execute();
}
