import { events } from '@scheduling/events';
import { type Effect, type Subscription, subscription } from '@scheduling/messaging';
import type { WebhookSchema } from './db/schema.ts';
import { type Fact, factOfAppointment, factOfCustomer, factOfMail, factOfParticipation } from './feed/read-fact.ts';

/** Every event that a CRM is told. */
export function webhookSubscriptions(): Subscription<WebhookSchema>[] {
  return [
    subscription(events.participationChanged, async (change, { eventId }) =>
      recording(eventId, factOfParticipation(change)),
    ),
    subscription(events.participationChangedSilently, async (change, { eventId }) =>
      recording(eventId, factOfParticipation(change)),
    ),
    subscription(events.appointmentChanged, async (change, { eventId }) =>
      recording(eventId, factOfAppointment(change)),
    ),
    subscription(events.customerChanged, async (change, { eventId }) => recording(eventId, factOfCustomer(change))),
    subscription(events.mailFailed, async (mail, { eventId }) => recording(eventId, factOfMail(mail))),
  ];
}

/** The event gets its place in the feed later: its predecessor may not have arrived. */
function recording(id: string, fact: Fact): Effect<WebhookSchema> {
  return async (tx) => {
    await tx
      .insertInto('incomingEvent')
      .values({ id, ...fact })
      .execute();
  };
}
