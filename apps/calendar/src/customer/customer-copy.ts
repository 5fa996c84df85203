import type { CreateCustomerRequest, Customer } from '@scheduling/contracts/customer/v1';
import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { callFunction, type FunctionCall } from '@scheduling/postgres';
import type { ProviderKey } from '@scheduling/service';
import type { Kysely } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { CustomerId } from './lock-customer.ts';

export interface CustomerReference extends ProviderKey {
  customerReference: string;
}

/**
 * The id of the customer with this reference, as far as calendar knows it: undefined means that the customer service
 * must be asked ({@link fetchCustomer}). Reads inside a transaction that books use the same condition, and lock the
 * row.
 */
export async function findCustomerId(
  db: Kysely<CalendarSchema>,
  { crmId, providerId, reference }: { crmId: string; providerId: string; reference: string },
): Promise<string | undefined> {
  const known = await db
    .selectFrom('customer')
    .select('id')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .where('reference', '=', reference)
    .where('referenceKnown', '=', true)
    .orderBy('refreshedAt', 'desc')
    .limit(1)
    .executeTakeFirst();
  return known?.id;
}

/** A customer as the customer service knows them at this moment. Rejects with `customer.not_found`. */
export async function requireCustomer(
  { customers }: CalendarDependencies,
  { crmId, providerReference, customerReference }: CustomerReference,
): Promise<Customer> {
  const { customer } = await customers.getCustomer({
    crmId,
    key: { $case: 'reference', value: { providerReference, customerReference } },
  });
  return customer!;
}

/** The same, and a copy of them is stored. */
export async function fetchCustomer(dependencies: CalendarDependencies, key: CustomerReference): Promise<Customer> {
  const customer = await requireCustomer(dependencies, key);
  await storeUnlessErased(dependencies, key.crmId, customer);
  return customer;
}

/**
 * The id of one who need not exist: undefined if the customer service knows nobody by the reference. Nobody is created.
 */
export async function fetchIfKnown(
  dependencies: CalendarDependencies,
  { crmId, providerReference }: ProviderKey,
  customerReference: string,
): Promise<string | undefined> {
  const key = { crmId, providerReference, customerReference };
  return (await undefinedIfNotFound(fetchCustomer(dependencies, key)))?.id;
}

/**
 * A customer whom the customer service knows by the reference, or who is to exist with this content unless it knows the
 * reference.
 */
export type NamedCustomer =
  | { customerReference: string }
  | Omit<CreateCustomerRequest, keyof ProviderKey | 'forBooking'>;

/**
 * Stores a copy of a customer whom calendar does not know, or returns a provisional one, who exists if a booking is
 * made for it. Stores nothing while somebody with the reference is being erased: then another one can be provided a
 * moment later. Rejects with `customer.not_found`.
 */
export async function provideCustomer(
  dependencies: CalendarDependencies,
  { crmId, providerReference }: ProviderKey,
  named: NamedCustomer,
): Promise<Customer | undefined> {
  if (!('userName' in named)) {
    await fetchCustomer(dependencies, { crmId, providerReference, customerReference: named.customerReference });
    return undefined;
  }
  const { customer, provisional } = await dependencies.customers.createCustomer({
    ...named,
    crmId,
    providerReference,
    forBooking: true,
  });
  if (provisional === true) return customer!;
  await storeConfirmed(dependencies, crmId, customer!);
  return undefined;
}

/** Has a provisional customer exist for whom a booking was made, and replaces the copy that is stored with it. */
export async function settleCustomer(
  dependencies: CalendarDependencies,
  { crmId, customerId }: CustomerId,
): Promise<void> {
  const { customer } = await dependencies.customers.settleCustomer({ crmId, id: customerId });
  await storeConfirmed(dependencies, crmId, customer!);
}

/** Calendar erases a person first; the customer service may still have the record for a moment. */
async function storeUnlessErased(dependencies: CalendarDependencies, crmId: string, customer: Customer): Promise<void> {
  if (!(await storeConfirmed(dependencies, crmId, customer))) throw new DomainError('customer.not_found');
}

/**
 * Replaces the copy of a customer by what the customer service says now. Nothing is left to replace of one who does not
 * exist any more.
 */
export async function refreshCustomer(
  dependencies: CalendarDependencies,
  { crmId, customerId }: CustomerId,
): Promise<void> {
  const customer = await findAtOwner(dependencies, crmId, customerId);
  if (customer !== undefined) await storeConfirmed(dependencies, crmId, customer);
}

/** Undefined if the customer service has none with this id, or has no longer. */
export async function findAtOwner(
  { customers }: CalendarDependencies,
  crmId: string,
  id: string,
): Promise<Customer | undefined> {
  const answer = await undefinedIfNotFound(customers.getCustomer({ crmId, key: { $case: 'id', value: id } }));
  return answer?.customer;
}

/**
 * Stores what the customer service answered. If calendar requires a later version, a reference was to change with it: a
 * change that was not made then, by a process that has ended or in a database that has been restored, must not be made
 * after this answer, so the customer service confirms the customer with that version. False, and nothing is stored, for
 * somebody who has been erased.
 */
async function storeConfirmed(
  { database: { kysely }, customers }: CalendarDependencies,
  crmId: string,
  customer: Customer,
): Promise<boolean> {
  const copy = await callFunction<StoredCopy>(kysely, storingOf(crmId, customer));
  if (copy.erased) return false;
  if (customer.version >= copy.version) return true;
  const { customer: confirmed } = await customers.confirmCustomer({ crmId, id: customer.id, version: copy.version });
  await callFunction(kysely, storingOf(crmId, confirmed!));
  return true;
}

interface StoredCopy {
  version: number;
  erased: boolean;
}

/** The call that stores a copy: see store-customer.sql. */
export function storingOf(crmId: string, customer: Customer): FunctionCall {
  const { id, providerId, customerReference: reference, userName, email, mobile, language, version } = customer;
  const request = { crmId, id, providerId, reference, userName, email, mobile, language, version };
  return { name: 'store_customer', request, locks: id };
}
