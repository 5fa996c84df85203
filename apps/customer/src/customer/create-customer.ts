import { CustomerChange } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { outboxJson } from '@scheduling/messaging';
import { callOnce, emptyToNull } from '@scheduling/postgres';
import { randomUUIDv7 } from 'node:crypto';
import { customerChanged } from './customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { requireCustomerById, requireCustomerByReference } from './get-customer.ts';
import { requireProviderId } from './provider-ids.ts';

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
 * Creates a customer of a provider and the event about it in one round trip, or returns the existing one with this reference, unchanged
 * (interface 4.4). The unique key on the reference resolves concurrent requests. Rejects with `provider.not_found`.
 */
export async function createCustomer(dependencies: CustomerDependencies, request: NewCustomer): Promise<CreatedCustomer> {
  const { crmId } = request;
  const providerId = await requireProviderId(dependencies, request);
  const row = newRow(providerId, request);
  const event = outboxJson(events.customerChanged, customerChanged(row, CustomerChange.CREATED));
  const call = { name: 'create_customer', request: { ...row, event }, locks: `${row.providerReference} ${row.reference}` };
  return callOnce(dependencies.database, crmId, {
    call,
    work: async (db, { outcome }: InsertResult) =>
      outcome === 'created' ? { customer: row, created: true } : { customer: await requireCustomerByReference(db, request), created: false },
    keep: ({ customer, created }) => ({ resourceIds: [customer.id], created }),
    replay: async (db, { resourceIds, created }) => ({ customer: await requireCustomerById(db, { crmId, id: resourceIds[0]! }), created }),
  });
}

interface CreatedCustomer {
  customer: CustomerRow;
  created: boolean;
}

/** See create-customer.sql. */
interface InsertResult {
  outcome: 'created' | 'exists';
}

function newRow(providerId: string, request: NewCustomer): CustomerRow {
  const { crmId, providerReference, customerReference: reference, userName, email = '', mobile = '', note = '', language = '' } = request;
  return { crmId, id: randomUUIDv7(), providerId, providerReference, reference, userName, ...emptyToNull({ email, mobile, note, language }), version: 1 };
}
