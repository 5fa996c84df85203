import { waitUntil, type WebhookEvent } from '@scheduling/embedded';
import { createCommand } from '@scheduling/command-line';
import { dataDirOf, inboxHostOf, UsageError } from './config.ts';
import { openWebhookInbox } from './open-webhook-inbox.ts';
import { type DemoMail, type DemoStep, playDemo } from './play-demo.ts';
import { styler } from './reporter.ts';
import { readStackFile } from './stack-file.ts';
import type { StackInfo } from '@scheduling/stack';

createCommand(
  'npm run demo --',
  'Book an appointment step by step on the running stack, and show every request and its response.',
).parse();
const output = process.stdout;
const style = styler(output);
// The reader of the output may close the pipe (`| head`).
output.on('error', () => process.exit());
const lineWidth = 100;
const eventTimeoutMs = 20_000;

try {
  const stack = await readStackFile(dataDirOf(process.env));
  print(
    `\n  ${style('bold', 'From an empty calendar to a confirmed booking')}, on ${stack.gateway} as the CRM "${stack.crmId}"\n`,
  );
  const received: WebhookEvent[] = [];
  await using webhookInbox = await openWebhookInbox(
    stack,
    inboxHostOf(process.env),
    (event) => event && received.push(event),
  );
  let number = 0;
  const mail = await playDemo(stack, Date.now().toString(36), (step) => {
    number += 1;
    showStep(number, stack, step);
  });
  await showEnd(stack, mail);
  await waitUntil(() => received.some(({ type }) => type === 'participation.created'), {
    what: 'the event',
    timeoutMs: eventTimeoutMs,
  }).catch(() => {
    throw new UsageError(`No event arrived at the webhook within ${eventTimeoutMs / 1_000} s.`);
  });
  showEvents(webhookInbox.url, received);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${style('red', '✘')} ${error.message}\n`);
  process.exitCode = 1;
}

function showStep(
  number: number,
  { crmId }: StackInfo,
  { title, method, path, body, status, statusText, durationMs, answer }: DemoStep,
): void {
  print(`  ${style('cyan', String(number))}  ${style('bold', title)}`);
  print(`     ${style('magenta', method)} /crms/${crmId}${path}`);
  if (body !== undefined) print(style('dim', indent(body)));
  print(`     ${style('green', `→ ${status} ${statusText}`)}  ${style('dim', `${Math.round(durationMs)} ms`)}`);
  print(`${indent(answer)}\n`);
}

async function showEnd(stack: StackInfo, mail: DemoMail | undefined): Promise<void> {
  const kept = (await isSandbox(stack)) ? `${stack.gateway}/crms/${stack.crmId}/sandbox/mails` : undefined;
  if (!mail) {
    const whereabouts =
      kept === undefined
        ? `was sent through the mail server at ${new URL(stack.smtp).host}.`
        : `was kept, because the CRM is a sandbox: ${style('cyan', kept)}`;
    return print(`  ${style('green', '✔')} Booked. The confirmation ${whereabouts}\n`);
  }
  print(`  ${style('green', '✔')} ${style('bold', 'Booked, and the confirmation has arrived')}`);
  print(`     From     ${mail.from.map(({ name, address }) => `${name} <${address}>`).join(', ')}`);
  print(`     To       ${mail.to.map(({ address }) => address).join(', ')}`);
  print(`     Subject  ${style('bold', mail.subject)}\n`);
  print(style('dim', mail.text.trim().replaceAll(/^/gm, '     | ')));
  print(`\n  Read it in the inbox: ${style('cyan', stack.inbox ?? '')}`);
  if (kept !== undefined)
    print(`  It was sent to nobody, because the CRM is a sandbox. Programs can read it at ${style('cyan', kept)}`);
  print('');
}

async function isSandbox({ gateway, crmId, apiKey }: StackInfo): Promise<boolean> {
  const { ok } = await fetch(`${gateway}/crms/${crmId}/sandbox/clock`, { headers: { 'x-service-client-id': apiKey } });
  return ok;
}

function showEvents(url: string, events: WebhookEvent[]): void {
  print(
    `  ${style('green', '✔')} ${style('bold', 'And a webhook has notified the CRM')}, at ${url}, which exists only during this demo`,
  );
  for (const { type, data } of events) print(`     ${type.padEnd(22)} ${style('dim', data.reference ?? '')}`);
  print(`\n  ${style('cyan', 'npm run webhook-inbox')} prints every event of the CRM "demo" as it happens.\n`);
}

function indent(body: unknown): string {
  const text = typeof body === 'string' ? body : formatJson(body, '');
  return text.replaceAll(/^/gm, '     ');
}

/** JSON with everything that fits kept on a single line. */
function formatJson(value: unknown, indentation: string): string {
  const isList = Array.isArray(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = isList
    ? value.map((item: unknown) => ['', item] as const)
    : Object.entries(value).map(([name, item]) => [`${JSON.stringify(name)}: `, item] as const);
  const [open, close] = isList ? '[]' : '{}';
  const pad = isList ? '' : ' ';
  const line = `${open}${pad}${entries.map(([name, item]) => `${name}${formatJson(item, '')}`).join(', ')}${pad}${close}`;
  if (entries.length === 0) return `${open}${close}`;
  if (!line.includes('\n') && line.length + indentation.length <= lineWidth) return line;
  const inner = `${indentation}  `;
  const items = entries.map(([name, item]) => `${inner}${name}${formatJson(item, inner)}`);
  return `${open}\n${items.join(',\n')}\n${indentation}${close}`;
}

function print(text: string): void {
  output.write(`${text}\n`);
}
