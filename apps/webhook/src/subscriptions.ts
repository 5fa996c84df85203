import { type Subscription, recordings } from '@scheduling/messaging';
import type { WebhookSchema } from './db/schema.ts';
import type { WebhookDependencies } from './dependencies.ts';
import { type Fact, factOfAppointment, factOfCustomer, factOfMail, factOfParticipation } from './feed/read-fact.ts';
import type { Feed } from './feed/start-feed.ts';
import { deleteWebhooksOfProvider } from './webhook/delete-webhooks-of-provider.ts';

/** Every event that a CRM is told: it becomes a part of the feed. With a provider, its webhooks are deleted. */
export function webhookSubscriptions(
  dependencies: Pick<WebhookDependencies, 'database'>,
  feed: Pick<Feed, 'record'>,
): Subscription<WebhookSchema>[] {
  const recording =
    <Data>(factOf: (data: Data) => Fact) =>
    (data: Data, { eventId: id }: { eventId: string }) =>
      feed.record({ id, ...factOf(data) });
  return recordings<WebhookSchema, 'webhook'>({
    participationChanged: recording(factOfParticipation),
    participationChangedSilently: recording(factOfParticipation),
    appointmentChanged: recording(factOfAppointment),
    customerChanged: recording(factOfCustomer),
    mailFailed: recording(factOfMail),
    providerDeleted: (provider) => deleteWebhooksOfProvider(dependencies, provider),
  });
}
