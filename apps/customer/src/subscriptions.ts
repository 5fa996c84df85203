import { events } from '@scheduling/events';
import { type Subscription, subscription } from '@scheduling/messaging';
import type { CustomerSchema } from './db/schema.ts';
import { confirmErasure } from './erasure/confirm-erasure.ts';

/** Events from other services and how this service handles them. */
export function customerSubscriptions(): Subscription<CustomerSchema>[] {
  return [events.calendarErasureConfirmed, events.notificationErasureConfirmed].map((definition) =>
    subscription(definition, async (confirmed) => (tx) => confirmErasure(tx, confirmed)),
  );
}
