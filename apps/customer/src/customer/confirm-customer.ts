import { CustomerChange } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { customerChanged } from './customer-changed.ts';
import type { CustomerDependencies, CustomerRow } from './customer.ts';
import { getCustomerById } from './get-customer.ts';

/**
 * The customer with at least this version, which may have been meant for a change of the reference that was not made ({@link changeReference}): it needs a later
 * one from now on. Rejects with `customer.not_found`.
 */
export async function confirmCustomer(dependencies: CustomerDependencies, { crmId, id, version }: { crmId: string; id: string; version: number }): Promise<CustomerRow> {
  const raised = await dependencies.database.transaction(async (tx) => {
    const customer = await tx
      .updateTable('customer')
      .set({ version })
      .where('crmId', '=', crmId)
      .where('id', '=', id)
      .where('version', '<', version)
      .returningAll()
      .executeTakeFirst();
    if (customer !== undefined) await appendEvent(tx, events.customerChanged, customerChanged(customer, CustomerChange.UPDATED));
    return customer;
  });
  return raised ?? getCustomerById(dependencies, { crmId, id });
}
