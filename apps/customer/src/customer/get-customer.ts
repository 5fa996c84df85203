import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { type CustomerId, type CustomerReference, requireCustomer, requireOrProvisional } from './find-customer.ts';
import { settleIfBooked } from './provisional-customer.ts';

/**
 * Asks calendar whether a provisional customer exists. Rejects with `customer.not_found`, also for a customer of
 * another CRM or provider.
 */
export async function getCustomer(
  dependencies: CustomerDependencies,
  key: CustomerId | CustomerReference,
): Promise<CustomerRow> {
  const { kysely } = dependencies.database;
  const found = await requireOrProvisional(kysely, key);
  if (!('provisionalId' in found)) return found;
  await settleIfBooked(dependencies, { crmId: key.crmId, id: found.provisionalId });
  return requireCustomer(kysely, key);
}
