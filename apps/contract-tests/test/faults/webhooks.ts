import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { signalProcess, waitUntil } from '@scheduling/embedded';
import { whilePaused } from '@scheduling/testing';
import { beforeAll, expect, it } from 'vitest';
import { type Answer, path } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createPractice,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { type FeedEvent, readFeed } from '../feed.ts';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { startReceiver, type TestReceiver } from '../webhook-receiver.ts';
import { stackForFaults } from './stack-with-faults.ts';

/** How many clients write at the same time. */
const writers = Number(process.env['WEBHOOK_WRITERS'] ?? 50);
/** How often webhook is killed while they do. */
const kills = Number(process.env['WEBHOOK_KILLS'] ?? 1);
/** A redelivery can take 15 s, and the lease of a dead process 10 s. */
const timed = { timeout: 600_000 };
const healMs = 120_000;

let stack: TestStack;
beforeAll(async () => void (stack = await stackForFaults()), 400_000);

/** @param whileStopped what happens on its disk, to which it does not write any more */
async function killAndWait(unit: 'webhook' | 'nats', whileStopped?: () => Promise<void>): Promise<void> {
  const pid = (await stack.currentInfo()).pids[unit]!;
  await whilePaused([pid], async () => {
    await whileStopped?.();
    signalProcess(pid, 'SIGKILL');
  });
  await waitUntil(async () => (await stack.currentInfo()).pids[unit] !== pid, {
    what: `${unit} to be back`,
    timeoutMs: healMs,
  });
}

/** Repeats a request until it is answered with 2xx; repeating it is safe. */
async function persist(request: () => Promise<Answer>): Promise<void> {
  const isDone = async (): Promise<boolean> => {
    const { status, text } = await request();
    if (status !== 503) expect([200, 201], text).toContain(status);
    return status !== 503;
  };
  await waitUntil(isDone, { what: 'the request', timeoutMs: healMs });
}

/** All clients book, and cancel, each for itself. */
async function write(crm: TestCrm, practice: Practice): Promise<void> {
  const appointmentReference = await createAppointment(practice, { capacity: writers });
  const clients = Array.from({ length: writers }, async () => {
    const reference = `${unique('p')}@test`;
    const body = { reference, appointmentReference, customerReference: practice.customer, state: 'BOOKED' };
    await persist(() => crm.post(`${practice.at}/participations?sendMails=false`, body));
    await persist(() =>
      crm.post(practice.at + path`/participations/${reference}?sendMails=false`, { state: 'CANCELED' }),
    );
  });
  await Promise.all(clients);
}

interface Scene {
  crm: TestCrm;
  practice: Practice;
  receiver: TestReceiver;
}

async function setScene(resources: AsyncDisposableStack): Promise<Scene> {
  const receiver = resources.use(await startReceiver());
  const crm = await createCrm({}, stack.info);
  const { body } = await crm.post<{ webhook: { secret: string } }>('/webhooks', {
    reference: unique('hook'),
    url: receiver.url,
  });
  receiver.secret = body.webhook.secret;
  return { crm, practice: await createPractice(crm), receiver };
}

/** The customer, the appointment, and two events for each client. */
const expectedEvents = 2 + 2 * writers;

async function expectEverything({ crm, receiver }: Scene): Promise<void> {
  const feed = await waitUntil(
    async () => {
      const events = await readFeed(crm, { limit: '1000' });
      return events.length >= expectedEvents && events;
    },
    { what: 'the feed to be complete', timeoutMs: healMs, intervalMs: 500 },
  );
  expect(feed).toHaveLength(expectedEvents);
  const rows = await query<{ sequence: number }>(
    'webhook',
    'SELECT sequence::int FROM event WHERE crm_id = $1 ORDER BY sequence',
    [crm.crmId],
    stack.info,
  );
  expect(rows.map(({ sequence }) => sequence)).toEqual(feed.map((_, index) => index + 1));
  for (const ofSubject of Map.groupBy(feed, ({ data }) => data.id).values())
    expect(ofSubject.map(({ data }) => data.version)).toEqual(ofSubject.map((_, index) => index + 1));
  const ids = feed.map(({ id }) => id);
  const firstArrivals = (events: FeedEvent[]): string[] => [...new Set(events.map(({ id }) => id))];
  await waitUntil(() => firstArrivals(receiver.events).length >= ids.length, {
    what: 'the receiver to get everything',
    timeoutMs: healMs,
    intervalMs: 500,
  });
  expect(firstArrivals(receiver.events)).toEqual(ids);
  expect(receiver.forgeries).toBe(0);
}

/** Webhook dies again and again, and once NATS loses its disk. */
async function disturb({ receiver }: Scene): Promise<void> {
  for (let count = 0; count < kills; count += 1) {
    const arrived = receiver.events.length;
    await killAndWait('webhook');
    if (count === 0) await killAndWait('nats', () => rm(join(stack.dataDir, 'nats', 'jetstream'), { recursive: true }));
    await waitUntil(() => receiver.events.length > arrived || receiver.events.length >= expectedEvents, {
      what: 'deliveries to go on',
      timeoutMs: healMs,
    });
  }
}

it(
  `${writers} clients that write at the same time get every event in their feed, and in order at their endpoint, whatever dies`,
  timed,
  async () => {
    await using resources = new AsyncDisposableStack();
    const scene = await setScene(resources);
    await Promise.all([write(scene.crm, scene.practice), disturb(scene)]);
    await expectEverything(scene);
  },
);
