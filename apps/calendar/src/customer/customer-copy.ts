import type { Customer } from '@scheduling/contracts/customer/v1';
import { DomainError } from '@scheduling/errors';
import { type Kysely, sql } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';

export interface CustomerReference {
  crmId: string;
  providerReference: string;
  customerReference: string;
}

/** Asks for a customer that calendar has not met under this reference and keeps the answer. Rejects with `customer.not_found`. */
export async function fetchCustomer({ database, customers }: CalendarDependencies, key: CustomerReference): Promise<void> {
  const { customer } = await customers.getCustomer({
    crmId: key.crmId,
    key: { $case: 'reference', value: { providerReference: key.providerReference, customerReference: key.customerReference } },
  });
  await storeCustomer(database.kysely, key.crmId, customer!);
  if (await isErased(database.kysely, key.crmId, customer!.id)) throw new DomainError('customer.not_found');
}

/** Calendar lets go of a person first; the customer service may have the record a moment longer. */
async function isErased(db: Kysely<CalendarSchema>, crmId: string, id: string): Promise<boolean> {
  const erased = await db
    .selectFrom('customer')
    .select('id')
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('erasedAt', 'is not', null)
    .executeTakeFirst();
  return erased !== undefined;
}

/**
 * An older copy gives way to a newer one, never the other way round, and none comes back after an erasure. The last one stored is the one
 * that its reference finds.
 */
export async function storeCustomer(db: Kysely<CalendarSchema>, crmId: string, customer: Customer): Promise<void> {
  const row = {
    providerId: customer.providerId,
    reference: customer.customerReference,
    userName: customer.userName,
    email: customer.email ?? null,
    mobile: customer.mobile ?? null,
    language: customer.language ?? null,
    version: customer.version,
    refreshedAt: sql<Date>`clock_timestamp()`,
  };
  await db
    .insertInto('customer')
    .values({ crmId, id: customer.id, ...row })
    .onConflict((conflict) =>
      conflict
        .columns(['crmId', 'id'])
        .doUpdateSet(row)
        .where('customer.version', '<=', row.version)
        .where('customer.erasedAt', 'is', null),
    )
    .execute();
}
