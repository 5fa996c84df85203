/**
 * Measures the delivery to webhooks: how late events are at a fast endpoint, while that of a second CRM hangs and that
 * of a third answers 500; and how long it takes to send a day again, while new events happen.
 *
 *   npx node apps/bench/src/measure/webhooks.ts [seconds] [events]
 */
import { startWebhookReceiver, waitUntil, type WebhookEvent } from '@scheduling/embedded';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { path } from '@scheduling/test-stack/client';
import { createCrm, createPractice, type Practice, type TestCrm } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { fillFeed } from '../fill-feed.ts';
import { startTestStack } from '@scheduling/test-stack/start-test-stack';

const seconds = Number(process.argv[2] ?? 30);
const replayed = Number(process.argv[3] ?? 100_000);
const changesPerSecond = 20;
const replayMs = 60 * 60 * 1_000;

interface Received {
  event: WebhookEvent;
  /** From the time in the id of the event, in milliseconds. */
  lagMs: number;
}

interface Subscriber {
  crm: TestCrm;
  practice: Practice;
  received: Received[];
}

await using resources = new AsyncDisposableStack();
const stack = resources.use(await startTestStack());
const [hanging, failing, fast] = [
  await subscribe(() => undefined),
  await subscribe((response) => void response.writeHead(500).end()),
  await subscribe((response) => void response.writeHead(204).end()),
];
await measureLag();
await measureReplay();

async function subscribe(answer: (response: ServerResponse) => void): Promise<Subscriber> {
  const received: Received[] = [];
  const receiver = resources.use(
    await startWebhookReceiver((event, response) => {
      if (event === undefined) throw new Error('a signature does not verify');
      received.push({ event, lagMs: Date.now() - Number.parseInt(event.id.replace('-', '').slice(0, 12), 16) });
      answer(response);
    }),
  );
  const crm = await createCrm({}, stack.info);
  const practice = await createPractice(crm);
  const { body } = await crm.post<{ webhook: { secret: string } }>('/webhooks', {
    reference: 'hook',
    url: receiver.url,
  });
  receiver.secret = body.webhook.secret;
  return { crm, practice, received };
}

async function change({ crm, practice }: Subscriber, note: string): Promise<void> {
  await crm.put(practice.at + path`/customers/${practice.customer}`, { note });
}

async function measureLag(): Promise<void> {
  const count = seconds * changesPerSecond;
  for (let index = 0; index < count; index += 1)
    await Promise.all([
      ...[hanging, failing, fast].map((each) => change(each, String(index))),
      delay(1_000 / changesPerSecond),
    ]);
  await waitUntil(() => fast.received.length >= count, { what: 'the events', timeoutMs: 60_000 });
  const lags = fast.received.map(({ lagMs }) => lagMs).toSorted((a, b) => a - b);
  const at = (share: number): number => lags[Math.min(lags.length - 1, Math.floor(lags.length * share))]!;
  console.log(`${lags.length} events at the fast endpoint: lag p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`);
  console.log(
    `meanwhile the hanging one got ${hanging.received.length} requests, the failing one ${failing.received.length}`,
  );
}

async function measureReplay(): Promise<void> {
  const { crm, received } = fast;
  await fillFeed(crm.crmId, replayed, stack.info);
  received.splice(0);
  const startedAt = performance.now();
  await crm.put('/webhooks/hook', { after: 'start' });
  const expected = async (): Promise<string[]> =>
    (
      await query<{ id: string }>(
        'webhook',
        'SELECT id FROM event WHERE crm_id = $1 ORDER BY sequence',
        [crm.crmId],
        stack.info,
      )
    ).map(({ id }) => id);
  let changes = 0;
  const isComplete = async (): Promise<boolean> => {
    if (received.length >= replayed) return received.length >= (await expected()).length;
    changes += 1;
    await change(fast, `during ${changes}`);
    return false;
  };
  await waitUntil(isComplete, { what: 'the replay', timeoutMs: replayMs, intervalMs: 1_000 });
  const arrived = [...new Set(received.map(({ event }) => event.id))];
  const isSame = JSON.stringify(arrived) === JSON.stringify(await expected());
  const tookS = (performance.now() - startedAt) / 1_000;
  console.log(
    `${received.length} events sent again in ${tookS.toFixed(0)} s, ${(received.length / tookS).toFixed(0)} per second; ${changes} new ones meanwhile`,
  );
  console.log(isSame ? 'complete, and in order' : 'NOT complete, or not in order');
}
