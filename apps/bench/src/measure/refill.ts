/**
 * Measures the cost of a lost stream: starts a stack, puts a million sent events into calendar's outbox (and into the
 * inbox of notification, which has processed them), deletes the stream, and books every 5 s until all are published
 * again. Prints how long each booking and its mail took.
 *
 *   npx node apps/bench/src/measure/refill.ts [events]
 */
import { ParticipationChanged } from '@scheduling/contracts/events/v1';
import { connectBroker, events } from '@scheduling/events';
import { createLogger } from '@scheduling/runtime';
import { startTestNats } from '@scheduling/testing';
import { setTimeout as delay } from 'node:timers/promises';
import { createAppointment, createCrm, createParticipation, createPractice } from '@scheduling/test-stack/crm';
import { waitForMails } from '@scheduling/test-stack/inbox';
import { query } from '@scheduling/test-stack/databases';
import { startTestStack } from '@scheduling/test-stack/start-test-stack';

const count = Number(process.argv[2] ?? 1_000_000);
const { subject, toJson } = events.participationChanged;
const consumer = 'notification-calendar-participation-changed';
const perStatement = 50_000;
const pauseMs = 5_000;
const connectMs = 5_000;

// Without users, because no user of the system may delete the stream.
await using nats = await startTestNats({ servers: 'embedded', users: false });
await using stack = await startTestStack({ NATS_URL: nats.url('test') });
const { info } = stack;
const crm = await createCrm({}, info);
await bookAndReceiveMail();
console.log(`inserting ${count} events`);
for (let inserted = 0; inserted < count; inserted += perStatement)
  await insertSentEvents(Math.min(perStatement, count - inserted));
await deleteStream();
const startedAt = performance.now();
console.log('the stream is deleted\n  seconds  booking and mail (ms)');
for (let run = 0; run === 0 || (await isRefilling()); run += 1) {
  const before = performance.now();
  await bookAndReceiveMail();
  console.log(`${seconds(before).padStart(9)}  ${Math.round(performance.now() - before)}`);
  await delay(pauseMs);
}
const [outbox] = await query<{ unsent: string }>(
  'calendar',
  'SELECT count(*) AS unsent FROM outbox WHERE sent_at IS NULL',
  [],
  info,
);
console.log(`the stream is complete again after ${seconds(performance.now())} s; ${outbox!.unsent} events wait`);

async function bookAndReceiveMail(): Promise<void> {
  const practice = await createPractice(crm);
  await createParticipation(practice, await createAppointment(practice));
  await waitForMails(practice.customerEmail, 1, info);
}

async function insertSentEvents(rows: number): Promise<void> {
  const data = toJson(ParticipationChanged.create({ crmId: 'demo' }));
  const inserted = await query<{ id: string }>(
    'calendar',
    `INSERT INTO outbox (id, subject, data, request_id, sent_at)
     SELECT uuidv7(ago), $1, $2, 'measure', now() + ago FROM (SELECT random() * interval '-6 days' AS ago FROM generate_series(1, $3::int)) AS past
     RETURNING id`,
    [subject, data, rows],
    info,
  );
  await query(
    'notification',
    'INSERT INTO inbox (consumer, event_id) SELECT $1, unnest($2::uuid[])',
    [consumer, inserted.map(({ id }) => id)],
    info,
  );
}

async function deleteStream(): Promise<void> {
  await using broker = connectBroker({
    url: nats.url('test'),
    name: 'measure',
    logger: createLogger({ service: 'measure', level: 'warn' }),
  });
  const { manager } = await broker.jetStream(AbortSignal.timeout(connectMs));
  await manager.streams.delete('scheduling');
}

async function isRefilling(): Promise<boolean> {
  const positions = await query<{ refilling: boolean }>(
    'calendar',
    'SELECT refill_after IS NOT NULL AS refilling FROM outbox_position',
    [],
    info,
  );
  return positions[0]?.refilling === true;
}

function seconds(at: number): string {
  return ((at - startedAt) / 1_000).toFixed(1);
}
