import type { CustomerErasureConfirmed } from '@scheduling/contracts/events/v1';
import { type Subscription, subscriptions } from '@scheduling/messaging';
import type { Transaction } from 'kysely';
import type { CustomerSchema } from './db/schema.ts';
import { confirmErasure } from './erasure/confirm-erasure.ts';

/** Events from other services and how this service handles them. */
export function customerSubscriptions(): Subscription<CustomerSchema>[] {
  const confirm = async (confirmed: CustomerErasureConfirmed) => (tx: Transaction<CustomerSchema>) =>
    confirmErasure(tx, confirmed);
  return subscriptions<CustomerSchema, 'customer'>({
    calendarErasureConfirmed: confirm,
    notificationErasureConfirmed: confirm,
  });
}
