/**
 * Measures whether a round of reminders takes longer the more is stored: fills two databases of calendar, one with 3,000
 * participations and one with a thousand times as many, in the appointments of 300 providers from three years ago to a
 * year ahead. In both, the same thousand reminders are due. Prints how long a round takes, measured in turn, and the
 * ratio, and exits with 1 if it is above 2.
 *
 *   npx node apps/bench/src/measure/reminders.ts [participations]
 */
import { startPostgres, withClient } from '@scheduling/embedded';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from 'pg';
import { createLimitDatabases } from '../limit-databases.ts';

const sizes = [3_000, Number(process.argv[2] ?? 3_000_000)] as const;
const due = 1_000;
const inEach = 2;
const [crms, providers] = [6, 300];
const rounds = 41;
const maxRatio = 2;
/** As many calls share a statement, and each considers so many appointments (write-reminders.ts). */
const [providersPerTurn, limit] = [64, 100];
/** The time of every round by the clock of the database. */
const present = new Date();

const dataDir = await mkdtemp(join(tmpdir(), 'scheduling-reminders-'));
try {
  await using postgres = await startPostgres({ dataDir });
  const { url } = await createLimitDatabases(postgres.url);
  const names = sizes.map((size) => `reminders_${size}`);
  for (const [index, size] of sizes.entries()) {
    await withClient(postgres.url('postgres'), (client) =>
      client.query(`CREATE DATABASE ${names[index]} TEMPLATE ${new URL(url('calendar')).pathname.slice(1)}`),
    );
    console.log(`inserting ${size} participations`);
    await withClient(postgres.url(names[index]!), (client) => fill(client, size));
  }
  const [few, many] = await withClient(postgres.url(names[0]!), (small) =>
    withClient(postgres.url(names[1]!), (large) => measureInTurn(small, large)),
  );
  const ratio = many / few;
  console.log(`a round takes ${few.toFixed(0)} ms, and ${many.toFixed(0)} ms with ${sizes[1]} participations`);
  console.log(`ratio: ${ratio.toFixed(2)}`);
  if (ratio > maxRatio) process.exitCode = 1;
} finally {
  await rm(dataDir, { recursive: true, force: true });
}

/** The last round was half a minute ago. Foreign keys are not checked, which would take most of the time. */
async function fill(client: Client, size: number): Promise<void> {
  await client.query("SET session_replication_role = 'replica'; SET synchronous_commit = off");
  const crmOf = (number: string): string => `'crm-' || ${number} % ${providers} % ${crms}`;
  await client.query(
    `INSERT INTO provider (crm_id, id, reference, time_zone, version)
     SELECT ${crmOf('n')}, ${idOf('n')}, 'provider-' || n, 'UTC', 1 FROM generate_series(0, ${providers - 1}) AS n`,
  );
  await client.query(
    `INSERT INTO booking_rules (crm_id, provider_id, minimum_notice, change_notice, confirmation, page, reminders, notify_provider, max_per_person, offers)
     SELECT crm_id, id, 0, 0, 'BOOKED', false, '{1440,120}', false, 3, '[]' FROM provider`,
  );
  await client.query(
    `INSERT INTO reminder_mark (crm_id, provider_id, minutes, until)
     SELECT crm_id, provider_id, unnest(reminders), $1::timestamptz - interval '30 seconds' FROM booking_rules`,
    [present],
  );
  // Those that are not due begin seven minutes after a quarter of an hour, counted from the present.
  await client.query(
    `INSERT INTO appointment (crm_id, id, provider_id, reference, resource_reference, product_reference, starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
     SELECT ${crmOf('n')}, ${idOf('n')}, ${idOf(`n % ${providers}`)}, 'a-' || n, 'room-' || n % 5, 'cut', starts_at, starts_at + interval '30 minutes', ${inEach}, ${inEach}, true, '\\x00'
       FROM generate_series(0, $1::int - 1) AS n
      CROSS JOIN LATERAL (
        SELECT CASE WHEN n < ${due / inEach}
          THEN $2::timestamptz + make_interval(mins => CASE n % 2 WHEN 0 THEN 1440 ELSE 120 END) - interval '15 seconds'
          ELSE date_bin('15 minutes', $2::timestamptz + (n::float8 / $1::int * 4 - 3) * interval '365 days', $2::timestamptz) + interval '7 minutes' END) AS start (starts_at)`,
    [size / inEach, present],
  );
  await client.query(
    `INSERT INTO participation (crm_id, id, appointment_id, reference, name, state, exempt, changed_at)
     SELECT ${crmOf(`(n / ${inEach})`)}, ${idOf('n')}, ${idOf(`n / ${inEach}`)}, 'p-' || n, 'Grace Hopper', CASE WHEN n >= ${due} AND n % 10 = 0 THEN 'CANCELED' ELSE 'BOOKED' END, true,
            $2::timestamptz - interval '3 days'
       FROM generate_series(0, $1::int - 1) AS n`,
    [size, present],
  );
  await client.query('VACUUM (ANALYZE)');
  await client.query('CHECKPOINT');
}

function idOf(number: string): string {
  return `('00000000-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`;
}

/** The medians, in milliseconds. */
async function measureInTurn(small: Client, large: Client): Promise<[number, number]> {
  const times: [number, number][] = [];
  for (let round = 0; round < rounds; round += 1) times.push([await timeRound(small), await timeRound(large)]);
  const median = (index: 0 | 1): number =>
    times.map((each) => each[index]).toSorted((a, b) => a - b)[Math.floor(rounds / 2)]!;
  return [median(0), median(1)];
}

/** All providers, as writeReminders of calendar does it. Nothing is kept, so the same reminders are due in the next one. */
async function timeRound(client: Client): Promise<number> {
  await client.query(
    "SELECT set_config('scheduling.clock_offset', ($1::timestamptz - clock_timestamp())::text, false)",
    [present],
  );
  await client.query('BEGIN');
  const startedMs = performance.now();
  const { rows } = await client.query<{ crmId: string; providerId: string }>(
    'SELECT DISTINCT crm_id AS "crmId", provider_id AS "providerId" FROM reminder_mark',
  );
  let written = 0;
  for (const ofCrm of Map.groupBy(rows, ({ crmId }) => crmId).values()) {
    for (let first = 0; first < ofCrm.length; first += providersPerTurn) {
      const requests = ofCrm.slice(first, first + providersPerTurn).map((each) => ({ ...each, limit, origin: {} }));
      const { rows: answers } = await client.query<{ written: number }>({
        name: 'remind',
        text: "SELECT (remind(request) ->> 'written')::int AS written FROM jsonb_array_elements($1) AS request",
        values: [JSON.stringify(requests)],
      });
      for (const answer of answers) written += answer.written;
    }
  }
  const ms = performance.now() - startedMs;
  await client.query('ROLLBACK');
  await client.query('VACUUM reminder_mark, outbox');
  if (written !== due) throw new Error(`${written} reminders were written, not ${due}`);
  return ms;
}
