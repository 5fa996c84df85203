import type { CreateCustomerRequest, Customer } from '@scheduling/contracts/customer/v1';
import { DomainError } from '@scheduling/errors';
import { type Kysely, sql } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { ProviderReference } from '../provider/provider-copy.ts';

export interface CustomerReference {
  crmId: string;
  providerReference: string;
  customerReference: string;
}

/** Fetches a customer that calendar does not know by this reference and stores a copy. Rejects with `customer.not_found`. */
export async function fetchCustomer({ database, customers }: CalendarDependencies, key: CustomerReference): Promise<void> {
  const { customer } = await customers.getCustomer({
    crmId: key.crmId,
    key: { $case: 'reference', value: { providerReference: key.providerReference, customerReference: key.customerReference } },
  });
  await storeUnlessErased(database.kysely, key.crmId, customer!);
}

/** A customer whom the customer service knows by the reference, or whom it creates with this content unless it knows the reference. */
export type NamedCustomer = { customerReference: string } | Omit<CreateCustomerRequest, keyof ProviderReference>;

/** Stores a copy of a customer whom calendar does not know, and has the customer created if necessary. Rejects with `customer.not_found`. */
export async function provideCustomer(dependencies: CalendarDependencies, { crmId, providerReference }: ProviderReference, named: NamedCustomer): Promise<void> {
  if (!('userName' in named)) return fetchCustomer(dependencies, { crmId, providerReference, ...named });
  const { customer } = await dependencies.customers.createCustomer({ crmId, providerReference, ...named });
  await storeUnlessErased(dependencies.database.kysely, crmId, customer!);
}

async function storeUnlessErased(db: Kysely<CalendarSchema>, crmId: string, customer: Customer): Promise<void> {
  await storeCustomer(db, crmId, customer);
  if (await isErased(db, crmId, customer.id)) throw new DomainError('customer.not_found');
}

/** Calendar erases a person first; the customer service may still have the record for a moment. */
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
 * A newer copy replaces an older one, never the reverse, and no copy is stored after an erasure. A lookup by reference finds the copy stored
 * last.
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
