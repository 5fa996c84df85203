import { sql } from 'kysely';
import type { CustomerDependencies } from './customer.ts';

/**
 * The references of the customers with these ids, without those that do not exist. An event that names a provisional
 * customer is about its booking, so it exists.
 */
export function listCustomerReferences(
  { database }: CustomerDependencies,
  { crmId, customerIds }: { crmId: string; customerIds: string[] },
): Promise<{ id: string; reference: string }[]> {
  return database.kysely
    .selectFrom('customer')
    .select(['id', 'reference'])
    .where('crmId', '=', crmId)
    .where('id', '=', sql<string>`ANY(${customerIds}::uuid[])`)
    .execute();
}
