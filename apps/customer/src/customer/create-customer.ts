import { events } from '@scheduling/events';
import { outboxJson } from '@scheduling/messaging';
import { callFunction, emptyToNull, runOnce } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import type { CustomerSchema } from '../db/schema.ts';
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
  return runOnce(dependencies.database, crmId, {
    work: (db) => createOrFindCustomer(db, providerId, request),
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

async function createOrFindCustomer(db: Kysely<CustomerSchema>, providerId: string, request: NewCustomer): Promise<CreatedCustomer> {
  const { crmId, providerReference, customerReference: reference, userName, email = '', mobile = '', note = '', language = '' } = request;
  const row = { crmId, id: randomUUIDv7(), providerId, providerReference, reference, userName, ...emptyToNull({ email, mobile, note, language }), version: 1 };
  const event = outboxJson(events.customerChanged, { crmId, customerId: row.id, version: row.version });
  const call = { name: 'create_customer', request: { ...row, event }, locks: `${providerReference} ${reference}` };
  const { outcome }: InsertResult = await callFunction(db, call);
  return outcome === 'created' ? { customer: row, created: true } : { customer: await requireCustomerByReference(db, request), created: false };
}
