/**
 * Measures what it costs that calendar programs read 100 calendars every minute, each of a provider of its own with 400
 * appointments and their participants by name: readers that send `If-None-Match`, others that do not, and reads after
 * a change. Prints the processor time of a read, and the share of a core if each calendar is read every minute. Exits
 * with 1 if it is above 1 % for readers that send it.
 *
 *   npx node apps/bench/src/measure/calendars.ts [appointments] [participants]
 */
import { createCrm, createPractice, type Practice } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { startTestStack } from '@scheduling/test-stack/start-test-stack';
import { type ProcessName, readCpu } from '../processes.ts';

const appointments = Number(process.argv[2] ?? 400);
/** In each appointment. */
const participants = Number(process.argv[3] ?? 3);
const calendars = 100;
/** Each calendar can be read 60 times in an hour. */
const rounds = 10;
const readsPerMinute = calendars;
const maxShare = 0.01;
const involved: ProcessName[] = ['page', 'calendar', 'identity', 'postgres'];

interface Feed {
  practice: Practice;
  url: string;
  tag: string;
}

await using stack = await startTestStack({ LOG_LEVEL: 'info' });
const { info } = stack;
const crm = await createCrm({ requestsPerMinute: 100_000 }, info);
const feeds: Feed[] = [];
for (let count = 0; count < calendars; count += 1) {
  const practice = await createPractice(crm);
  const body = { reference: `calendar-${count}`, details: 'NAMES' };
  const answer = await crm.post<{ calendar: { url: string } }>(`${practice.at}/calendars`, body);
  // Calendar knows the provider only now.
  await fill(practice);
  feeds.push({ practice, url: answer.body.calendar.url, tag: '' });
}
await query('calendar', 'ANALYZE', [], info);

/** Of customers, a week apart in ten hours a day. */
async function fill({ provider }: Practice): Promise<void> {
  await query(
    'calendar',
    `WITH made AS (
       INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, description, address, starts_at, ends_at,
                                capacity, taken, accept_bookings, content_digest)
       SELECT provider.crm_id, provider.id, provider.reference || '-' || n, 'room-1', 'flow', 'Vinyasa Flow',
              '{"street":"Lange Straße","number":"1","zip":"10115","city":"Berlin","countryCode":"DE"}', starts_at, starts_at + interval '1 hour', 8, $2, true, ''
         FROM provider, generate_series(1, $1::int) AS n, LATERAL (SELECT now() - interval '29 days' + n * interval '25 hours') AS start (starts_at)
        WHERE provider.reference = $3
       RETURNING crm_id, id, provider_id),
     person AS (
       INSERT INTO customer (crm_id, id, provider_id, reference, user_name, email, version)
       SELECT made.crm_id, gen_random_uuid(), made.provider_id, made.id || '-' || n, 'Ada Lovelace ' || n, 'ada@example.com', 1
         FROM made, generate_series(1, $2) AS n
       RETURNING crm_id, id, reference)
     INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, state, exempt)
     SELECT crm_id, uuidv7(), left(reference, 36)::uuid, id, reference, 'BOOKED', false FROM person`,
    [appointments, participants, provider],
    info,
  );
}

/** Reads all calendars one after the other, as often as there are rounds; returns the milliseconds of each process. */
async function read(expected: number, { known = false, changed = false } = {}): Promise<number[]> {
  const used = involved.map(() => 0);
  for (let round = 0; round < rounds; round += 1) {
    if (changed)
      await query(
        'calendar',
        `UPDATE appointment SET description = 'Round ' || $1::int, revision = revision + 1 WHERE reference LIKE '%-7'`,
        [round],
        info,
      );
    const before = await readCpu(info.pids);
    for (const feed of feeds) {
      const response = await fetch(feed.url, { headers: known ? { 'if-none-match': feed.tag } : {} });
      if (response.status !== expected) throw new Error(`${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
      feed.tag = response.headers.get('etag')!;
    }
    const after = await readCpu(info.pids);
    for (const [index, name] of involved.entries()) used[index]! += (after[name] ?? Number.NaN) - before[name]!;
  }
  return used.map((ms) => ms / (rounds * feeds.length));
}

function shareOf(used: number[]): number {
  return (used.reduce((sum, ms) => sum + ms, 0) * readsPerMinute) / 60_000;
}

function print(what: string, used: number[]): void {
  const each = used.map((ms, index) => `${involved[index]} ${ms.toFixed(2)}`).join(', ');
  console.log(`${what}: ${(shareOf(used) * 100).toFixed(2)} % of a core (ms of a read: ${each})`);
}

// The first read of each calendar stores its events, and compiles the code.
print('first reads', await read(200));
const unchanged = await read(304, { known: true });
print('unchanged, with If-None-Match', unchanged);
print('unchanged, without', await read(200));
print('changed in one event', await read(200, { known: true, changed: true }));
if (shareOf(unchanged) > maxShare) process.exitCode = 1;
