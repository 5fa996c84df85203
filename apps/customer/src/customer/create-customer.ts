import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { emptyToNull, transactOnce } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { requireCustomerById, requireCustomerByReference } from './get-customer.ts';

export interface NewCustomer {
  crmId: string;
  providerReference: string;
  customerReference: string;
  userName: string;
  email?: string | undefined;
  mobile?: string | undefined;
  note?: string | undefined;
  language?: string | undefined;
}

/**
 * Creates a customer of a provider, or returns the existing one with this reference, unchanged (interface 4.4). The unique key on the reference
 * resolves concurrent requests. Rejects with `provider.not_found`.
 */
export async function createCustomer(
  { database, identity }: CustomerDependencies,
  request: NewCustomer,
): Promise<{ customer: CustomerRow; created: boolean }> {
  const { provider } = await identity.getProvider({
    crmId: request.crmId,
    key: { $case: 'reference', value: request.providerReference },
  });
  const { crmId } = request;
  return transactOnce(database, crmId, {
    work: (tx) => createOrFindCustomer(tx, provider!.id, request),
    keep: ({ customer, created }) => ({ resourceIds: [customer.id], created }),
    replay: async (tx, { resourceIds, created }) => ({ customer: await requireCustomerById(tx, { crmId, id: resourceIds[0]! }), created }),
  });
}

async function createOrFindCustomer(
  tx: Transaction<CustomerSchema>,
  providerId: string,
  request: NewCustomer,
): Promise<{ customer: CustomerRow; created: boolean }> {
  const inserted = await insertCustomer(tx, providerId, request);
  if (inserted === undefined) return { customer: await requireCustomerByReference(tx, request), created: false };
  await appendEvent(tx, events.customerChanged, { crmId: inserted.crmId, customerId: inserted.id, version: inserted.version });
  return { customer: inserted, created: true };
}

function insertCustomer(tx: Transaction<CustomerSchema>, providerId: string, request: NewCustomer): Promise<CustomerRow | undefined> {
  const { crmId, providerReference, customerReference: reference, userName, email, mobile, note, language } = request;
  return tx
    .insertInto('customer')
    .values({ crmId, providerId, providerReference, reference, userName, ...emptyToNull({ email, mobile, note, language }) })
    .onConflict((conflict) => conflict.constraint('customer_reference_key').doNothing())
    .returningAll()
    .executeTakeFirst();
}
