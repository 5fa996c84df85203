import { sql } from 'kysely';
import { appendChanges } from './customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { getCustomer } from './get-customer.ts';

/**
 * The customer with at least this version, which may have been meant for a change of the reference that was not made
 * (update-customer.ts): it needs a later one from now on. Rejects with `customer.not_found`.
 */
export async function confirmCustomer(
  dependencies: CustomerDependencies,
  { crmId, id, version }: { crmId: string; id: string; version: number },
): Promise<CustomerRow> {
  const raised = await dependencies.database.transaction(async (tx) => {
    const changed = await tx
      .updateTable('customer')
      .set({ version })
      .where('crmId', '=', crmId)
      .where('id', '=', id)
      .where('version', '<', version)
      .returningAll()
      .returning(sql<number>`old.version`.as('oldVersion'))
      .executeTakeFirst();
    if (changed === undefined) return undefined;
    const { oldVersion, ...customer } = changed;
    await appendChanges(tx, customer, oldVersion);
    return customer;
  });
  return raised ?? getCustomer(dependencies, { crmId, id });
}
