import type { WebhookEvent } from '@scheduling/embedded';
import { createCommand, listenForInterruption } from '@scheduling/command-line';
import { dataDirOf, inboxHostOf, UsageError } from './config.ts';
import { openWebhookInbox } from './open-webhook-inbox.ts';
import { readStackFile } from './stack-file.ts';

createCommand(
  'npm run webhook-inbox --',
  'Register a webhook of the demo CRM on the running stack, and print every event that is sent to it, until Ctrl-C.',
).parse();

try {
  const { stop } = listenForInterruption();
  const stack = await readStackFile(dataDirOf(process.env));
  await using inbox = await openWebhookInbox(stack, inboxHostOf(process.env), (event) =>
    console.log(event ? describe(event) : '✘ a call with an invalid signature'),
  );
  console.log(`Waiting for events of the CRM "${stack.crmId}" at ${inbox.url}. Ctrl-C deletes the webhook.`);
  await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exitCode = error.exitCode;
}

function describe(event: WebhookEvent): string {
  return `${event.timestamp}  ${event.type}\n${JSON.stringify(event, undefined, 2).replaceAll(/^/gm, '  ')}`;
}
