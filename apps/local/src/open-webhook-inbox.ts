import { randomUUID } from 'node:crypto';
import { type Client, createClient, ProblemError } from '@scheduling/client';
import { startWebhookReceiver, type WebhookEvent } from '@scheduling/embedded';
import { UsageError } from './config.ts';
import type { StackInfo } from '@scheduling/stack';

const prefix = 'webhook-inbox-';

/** An endpoint on this machine that the demo CRM has registered as a webhook. Disposal deletes the webhook. */
export interface WebhookInbox extends AsyncDisposable {
  url: string;
}

/**
 * Calls back for each event of the demo CRM from now on, and for each call whose signature is not valid, with
 * undefined.
 *
 * @param host the name or address of this machine for the services
 */
export async function openWebhookInbox(
  { gateway, crmId, apiKey }: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>,
  host: string,
  onEvent: (event: WebhookEvent | undefined) => void,
): Promise<WebhookInbox> {
  const client = createClient({ url: gateway, crmId, key: apiKey });
  await using starting = new AsyncDisposableStack();
  const receiver = starting.use(
    await startWebhookReceiver((event, response) => {
      onEvent(event);
      response.writeHead(event === undefined ? 401 : 204).end();
    }, host),
  );
  const reference = `${prefix}${randomUUID()}@demo`;
  try {
    await deleteAbandoned(client);
    const { data } = await client.POST('/webhooks', { body: { reference, url: receiver.url } });
    receiver.secret = data.webhook.secret!;
  } catch (error) {
    throw new UsageError(
      error instanceof ProblemError
        ? `The webhook could not be registered: ${error.message}`
        : `The gateway at ${gateway} is not responding.`,
    );
  }
  // Deleted first, so that nothing is sent to an endpoint that has closed. The stack may have stopped.
  starting.defer(() =>
    deleteWebhook(createClient({ url: gateway, crmId, key: apiKey, retryForMs: 0 }), reference).catch(() => undefined),
  );
  const started = starting.move();
  return { url: receiver.url, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Those of commands that were killed: nobody listens any more. */
async function deleteAbandoned(client: Client): Promise<void> {
  const { data: webhooks } = await client.GET('/webhooks');
  const abandoned = webhooks.filter(
    ({ reference, failedAttempts, state }) =>
      reference.startsWith(prefix) && (failedAttempts > 0 || state === 'DISABLED'),
  );
  for (const { reference } of abandoned) await deleteWebhook(client, reference);
}

async function deleteWebhook(client: Client, webhookRef: string): Promise<void> {
  await client.DELETE('/webhooks/{webhookRef}', { params: { path: { webhookRef } } });
}
