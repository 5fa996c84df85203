import { events } from '@scheduling/events';
import { type Subscription, subscription } from '@scheduling/messaging';
import type { CustomerSchema } from './db/schema.ts';
import { confirmErasure } from './erasure/confirm-erasure.ts';

/** What other services tell, and what customer does with it. */
export function customerSubscriptions(): Subscription<CustomerSchema>[] {
  return [events.calendarErasureConfirmed, events.notificationErasureConfirmed].map((definition) =>
    subscription(definition, async (confirmed) => (tx) => confirmErasure(tx, confirmed)),
  );
}
