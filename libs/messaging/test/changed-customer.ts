import { CustomerChange, type CustomerChanged } from '@scheduling/contracts/events/v1';

/** The data of some event. */
export function changedCustomer(version: number, customerId = 'customer'): CustomerChanged {
  return {
    crmId: 'crm',
    customerId,
    version,
    providerId: 'provider',
    change: CustomerChange.UPDATED,
    actor: 'service',
  };
}
