import { undefinedIfNotFound } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent, type Subscription, subscriptions } from '@scheduling/messaging';
import { findAtOwner, storingOf } from './customer/customer-copy.ts';
import { forgetRemovedParticipations, removeCustomer } from './erasure/remove-customer.ts';
import type { CalendarSchema } from './db/schema.ts';
import type { CalendarDependencies } from './dependencies.ts';
import { makeInZone } from './hours/make-hours-due.ts';
import { storeProvider } from './provider/provider-copy.ts';

/** Events from other services: calendar refreshes its copies of providers and customers, and erases deleted people. */
export function calendarSubscriptions(dependencies: CalendarDependencies): Subscription<CalendarSchema>[] {
  const { identity } = dependencies;
  return subscriptions<CalendarSchema, 'calendar'>({
    providerChanged: async ({ crmId, providerId }) => {
      const answer = await undefinedIfNotFound(
        identity.getProvider({ crmId, key: { $case: 'id', value: providerId } }),
      );
      return async (tx) => {
        if (!answer?.provider) return;
        const { id, timeZone } = answer.provider;
        // Of one that is being deleted there are no hours.
        if (await storeProvider(tx, crmId, answer.provider)) await makeInZone(tx, { crmId, providerId: id, timeZone });
      };
    },
    customerChanged: async ({ crmId, customerId }) => {
      const customer = await findAtOwner(dependencies, crmId, customerId);
      return customer && storingOf(crmId, customer);
    },
    customerErasureRequested: async ({ crmId, customerId, erasureId, byAddress }) => {
      // Already done when the deletion was requested; repeated in case this database has been restored from a backup
      // since.
      if (!byAddress) await removeCustomer(dependencies, { crmId, customerId, ignoreFutureAppointments: true });
      return async (tx) => {
        await forgetRemovedParticipations(tx, { crmId, customerId });
        await appendEvent(tx, events.calendarErasureConfirmed, { crmId, erasureId, service: 'calendar' });
      };
    },
  });
}
