import { DomainError } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';

export interface CustomerReference {
  crmId: string;
  providerReference: string;
  customerReference: string;
}

/** Rejects with `customer.not_found`, also for a customer of another CRM or provider. */
export function getCustomerByReference({ database }: CustomerDependencies, key: CustomerReference): Promise<CustomerRow> {
  return requireCustomerByReference(database.kysely, key);
}

export function getCustomerById({ database }: CustomerDependencies, key: { crmId: string; id: string }): Promise<CustomerRow> {
  return requireCustomerById(database.kysely, key);
}

export function requireCustomerById(db: Kysely<CustomerSchema>, key: { crmId: string; id: string }): Promise<CustomerRow> {
  return requireCustomer(db, key);
}

export function requireCustomerByReference(db: Kysely<CustomerSchema>, { crmId, providerReference, customerReference }: CustomerReference): Promise<CustomerRow> {
  return requireCustomer(db, { crmId, providerReference, customerReference });
}

/** See get-customer.sql. */
async function requireCustomer(db: Kysely<CustomerSchema>, request: CustomerReference | { crmId: string; id: string }): Promise<CustomerRow> {
  const customer: CustomerRow | null = await callFunction(db, { name: 'get_customer', request, locks: '' });
  if (customer === null) throw new DomainError('customer.not_found');
  return customer;
}
