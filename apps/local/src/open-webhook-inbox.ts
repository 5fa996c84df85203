import { randomUUID } from 'node:crypto';
import { startWebhookReceiver, type WebhookEvent } from '@scheduling/embedded';
import { UsageError } from './config.ts';
import { type GatewayRequest, sendRequest } from './send-request.ts';
import type { StackInfo } from './stack-file.ts';

const prefix = 'webhook-inbox-';

/** An endpoint on this machine that the demo CRM has registered as a webhook. Disposal deletes the webhook. */
export interface WebhookInbox extends AsyncDisposable {
  url: string;
}

interface ListedWebhook {
  reference: string;
  failedAttempts: number;
  state: string;
}

/**
 * Calls back for each event of the demo CRM from now on, and for each call whose signature is not valid, with undefined.
 *
 * @param host the name or address of this machine for the services
 */
export async function openWebhookInbox(
  stack: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>,
  host: string,
  onEvent: (event: WebhookEvent | undefined) => void,
): Promise<WebhookInbox> {
  await using starting = new AsyncDisposableStack();
  const receiver = starting.use(
    await startWebhookReceiver((event, response) => {
      onEvent(event);
      response.writeHead(event === undefined ? 401 : 204).end();
    }, host),
  );
  await deleteAbandoned(stack);
  const reference = `${prefix}${randomUUID()}@demo`;
  const { webhook } = (await call(stack, { method: 'POST', path: '/webhooks', body: { reference, url: receiver.url } })) as { webhook: { secret: string } };
  receiver.secret = webhook.secret;
  // Deleted first, so that nothing is sent to an endpoint that has closed. The stack may have stopped.
  starting.defer(() => call(stack, { method: 'DELETE', path: pathOf(reference) }).then(() => undefined, () => undefined));
  const started = starting.move();
  return { url: receiver.url, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Those of commands that were killed: nobody listens any more. */
async function deleteAbandoned(stack: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>): Promise<void> {
  const webhooks = (await call(stack, { method: 'GET', path: '/webhooks' })) as ListedWebhook[];
  const abandoned = webhooks.filter(({ reference, failedAttempts, state }) => reference.startsWith(prefix) && (failedAttempts > 0 || state === 'DISABLED'));
  for (const { reference } of abandoned) await call(stack, { method: 'DELETE', path: pathOf(reference) });
}

function pathOf(reference: string): string {
  return `/webhooks/${encodeURIComponent(reference)}`;
}

/** Returns the body of the answer. Rejects with a UsageError if it is not 2xx. */
async function call(stack: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>, request: GatewayRequest): Promise<unknown> {
  const { status, body } = await sendRequest(stack, request);
  if (status < 200 || status > 299) throw new UsageError(`${request.method} ${request.path} was answered with ${status}: ${JSON.stringify(body)}`);
  return body;
}
