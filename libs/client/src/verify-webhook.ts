import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import type { components } from './api.ts';

/** An event of the feed, as webhooks receive it. There may be new types. */
export type Event = components['schemas']['Event'];

export { WebhookVerificationError };

/**
 * Returns the event in the request of a webhook. Throws a WebhookVerificationError unless it is signed with the secret,
 * within the last 5 minutes.
 *
 * @param body as it arrived, not parsed
 * @param headers `Headers`, or an object with names in lower case, as that of `node:http`
 */
export function verifyWebhook(
  secret: string,
  body: string,
  headers: Headers | Record<string, string | string[] | undefined>,
): Event {
  const given = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const texts = Object.fromEntries(given.map(([name, value]) => [name, [value].flat().join()]));
  return new Webhook(secret).verify(body, texts) as Event;
}
