import { startWebhookReceiver, waitUntil } from '@scheduling/embedded';
import type { Journal } from './journal.ts';
import type { Tenant } from './model.ts';

/** The endpoint of a CRM, which accepts every event. */
export interface Webhook extends AsyncDisposable {
  /** The ids of the events, in the order in which they came for the first time. */
  delivered: Set<string>;
  /** Waits until this event has come, and at most a minute: a process that died holds its lease for 10 s. */
  waitFor(eventId: string): Promise<void>;
}

const deliveryMs = 60_000;

export async function receiveWebhook({ crmId, client }: Tenant, journal: Journal): Promise<Webhook> {
  const delivered = new Set<string>();
  const receiver = await startWebhookReceiver((event, response) => {
    if (event === undefined) journal.surprises.push(`I12 a call of the webhook of ${crmId} has a wrong signature`);
    else delivered.add(event.id);
    response.writeHead(event === undefined ? 401 : 204).end();
  });
  const answer = await client.send({
    method: 'POST',
    path: '/webhooks',
    body: { reference: 'webhook@load', url: receiver.url },
  });
  if (answer?.status !== 201) throw new Error(`the webhook was answered with ${answer?.status} ${answer?.text}`);
  receiver.secret = (answer.body as { webhook: { secret: string } }).webhook.secret;
  return {
    delivered,
    // What is missing is found by the check.
    waitFor: (eventId) =>
      waitUntil(() => delivered.has(eventId), { what: `the event ${eventId}`, timeoutMs: deliveryMs }).then(
        () => undefined,
        () => undefined,
      ),
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  };
}
