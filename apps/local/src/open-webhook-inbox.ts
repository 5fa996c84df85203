import { randomUUID } from 'node:crypto';
import { UsageError } from './config.ts';
import type { StackInfo } from './stack-file.ts';
import { startWebhookReceiver, type WebhookEvent } from './webhook-receiver.ts';

const prefix = 'webhook-inbox-';
const requestTimeoutMs = 10_000;

/** An endpoint on this machine that the demo CRM has registered as a webhook. Disposal deletes the webhook. */
export interface WebhookInbox extends AsyncDisposable {
  url: string;
}

interface ListedWebhook {
  reference: string;
  failedAttempts: number;
  state: string;
}

/** Calls back for each event of the demo CRM from now on, and for each call whose signature is not valid, with undefined. */
export async function openWebhookInbox(stack: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>, onEvent: (event: WebhookEvent | undefined) => void): Promise<WebhookInbox> {
  await using starting = new AsyncDisposableStack();
  const receiver = starting.use(
    await startWebhookReceiver((event, response) => {
      onEvent(event);
      response.writeHead(event === undefined ? 401 : 204).end();
    }),
  );
  await deleteAbandoned(stack);
  const reference = `${prefix}${randomUUID()}@demo`;
  const { webhook } = await send<{ webhook: { secret: string } }>(stack, 'POST', '/webhooks', { reference, url: receiver.url });
  receiver.secret = webhook.secret;
  // Deleted first, so that nothing is sent to an endpoint that has closed. The stack may have stopped.
  starting.defer(() => send(stack, 'DELETE', addressOf(reference)).then(() => undefined, () => undefined));
  const started = starting.move();
  return { url: receiver.url, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Those of commands that were killed: nobody listens any more. */
async function deleteAbandoned(stack: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>): Promise<void> {
  const webhooks = await send<ListedWebhook[]>(stack, 'GET', '/webhooks');
  const abandoned = webhooks.filter(({ reference, failedAttempts, state }) => reference.startsWith(prefix) && (failedAttempts > 0 || state === 'DISABLED'));
  for (const { reference } of abandoned) await send(stack, 'DELETE', addressOf(reference));
}

function addressOf(reference: string): string {
  return `/webhooks/${encodeURIComponent(reference)}`;
}

async function send<Body>({ gateway, crmId, apiKey }: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>, method: string, address: string, body?: object): Promise<Body> {
  const response = await fetch(`${gateway}/crms/${crmId}${address}`, {
    method,
    headers: { 'x-service-client-id': apiKey, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(requestTimeoutMs),
  }).catch(() => {
    throw new UsageError(`The gateway at ${gateway} is not responding.`);
  });
  const text = await response.text();
  if (!response.ok) throw new UsageError(`${method} ${address} was answered with ${response.status}: ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as Body;
}
