import { CustomerChange, type CustomerChanged } from '@scheduling/contracts/events/v1';
import { currentActor } from '@scheduling/runtime';
import type { CustomerRow } from './customer.ts';

/** The event about a change; `row` is the customer after it, or before a deletion, which counts as a version, too. */
export function customerChanged({ crmId, id: customerId, providerId, version }: CustomerRow, change: CustomerChange): CustomerChanged {
  return { crmId, customerId, providerId, version: change === CustomerChange.DELETED ? version + 1 : version, change, actor: currentActor() };
}
