import { DomainError } from '@scheduling/errors';
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
  return db
    .selectFrom('customer')
    .selectAll()
    .where('crmId', '=', key.crmId)
    .where('id', '=', key.id)
    .executeTakeFirstOrThrow(() => new DomainError('customer.not_found'));
}

export function requireCustomerByReference(db: Kysely<CustomerSchema>, key: CustomerReference): Promise<CustomerRow> {
  return db
    .selectFrom('customer')
    .selectAll()
    .where('crmId', '=', key.crmId)
    .where('providerReference', '=', key.providerReference)
    .where('reference', '=', key.customerReference)
    .executeTakeFirstOrThrow(() => new DomainError('customer.not_found'));
}
