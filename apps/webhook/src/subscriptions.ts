import { type Effect, type Subscription, subscriptions } from '@scheduling/messaging';
import type { WebhookSchema } from './db/schema.ts';
import { type Fact, factOfAppointment, factOfCustomer, factOfMail, factOfParticipation } from './feed/read-fact.ts';

/** Every event that a CRM is told. */
export function webhookSubscriptions(): Subscription<WebhookSchema>[] {
  return subscriptions<WebhookSchema, 'webhook'>({
    participationChanged: recording(factOfParticipation),
    participationChangedSilently: recording(factOfParticipation),
    appointmentChanged: recording(factOfAppointment),
    customerChanged: recording(factOfCustomer),
    mailFailed: recording(factOfMail),
  });
}

/** The event gets its place in the feed later: its predecessor may not have arrived. */
function recording<Data>(factOf: (data: Data) => Fact) {
  return async (data: Data, { eventId: id }: { eventId: string }): Promise<Effect<WebhookSchema>> =>
    async (tx) => {
      await tx
        .insertInto('incomingEvent')
        .values({ id, ...factOf(data) })
        .execute();
    };
}
