import { DomainError } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import type { CustomerRow } from './customer.ts';

export interface CustomerId {
  crmId: string;
  id: string;
}

export interface CustomerReference {
  crmId: string;
  providerReference: string;
  customerReference: string;
}

/** A provisional customer does not exist, as far as this service knows. Rejects with `customer.not_found`. */
export function requireCustomer(db: Kysely<CustomerSchema>, key: CustomerId | CustomerReference): Promise<CustomerRow> {
  return find(db, onlyKey(key));
}

/** Returns the id of a provisional customer instead. Rejects with `customer.not_found`. */
export function requireOrProvisional(
  db: Kysely<CustomerSchema>,
  key: CustomerId | CustomerReference,
): Promise<CustomerRow | { provisionalId: string }> {
  return find(db, { ...onlyKey(key), withProvisional: true });
}

/** See get-customer.sql. */
async function find<Found>(
  db: Kysely<CustomerSchema>,
  request: (CustomerId | CustomerReference) & { withProvisional?: boolean },
): Promise<Found> {
  const found: Found | null = await callFunction(db, { name: 'get_customer', request });
  if (found === null) throw new DomainError('customer.not_found');
  return found;
}

/** Callers may pass whole requests. */
function onlyKey(key: CustomerId | CustomerReference): CustomerId | CustomerReference {
  if ('id' in key) return { crmId: key.crmId, id: key.id };
  const { crmId, providerReference, customerReference } = key;
  return { crmId, providerReference, customerReference };
}
