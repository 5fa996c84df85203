import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { expect, it } from 'vitest';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';

const providerId = randomUUIDv7();
const otherProviderId = randomUUIDv7();
const dueCount = 20;

it('a session that wrote reminders while the tables were empty reads no more rows for them when these are a hundred times as large', async () => {
  const logger = testLogger('reminder-reads-test');
  const url = new URL(await createMigratedDatabase('calendar', migrateCalendarDatabase));
  const open = () => createDatabase<CalendarSchema>({ url: url.href, applicationName: 'test', logger, ...longTimeout });
  // One connection: it caches the plans made while the tables were empty.
  await using session = createDatabase<CalendarSchema>({
    url: url.href,
    applicationName: 'session',
    logger,
    maxConnections: 1,
  });
  // What fills the tables takes longer than a statement of a service.
  url.searchParams.set('query_timeout', '600000');
  await using filler = open();

  await setRules(filler);
  for (let count = 0; count < 10; count += 1) expect((await remind(session)).written).toBe(0);
  await fill(filler, 'due', dueCount);
  await fill(filler, 'others', 300);
  const few = await remind(session);
  await fill(filler, 'many others', 30_000);
  const many = await remind(session);
  expect([few.written, many.written]).toEqual([dueCount, dueCount]);
  expect(few.rowsRead).toBeLessThan(10 * dueCount);
  expect(many.rowsRead).toBeLessThanOrEqual(few.rowsRead);
}, 600_000);

/** The last reminders were written an hour ago. */
async function setRules({ kysely }: Database<CalendarSchema>): Promise<void> {
  await sql`
    INSERT INTO provider (crm_id, id, reference, time_zone, version)
    VALUES ('crm', ${providerId}, 'provider', 'UTC', 1), ('crm', ${otherProviderId}, 'other', 'UTC', 1)`.execute(
    kysely,
  );
  await sql`
    INSERT INTO booking_rules (crm_id, provider_id, minimum_notice, change_notice, confirmation, page, reminders, notify_provider, max_per_person, offers)
    VALUES ('crm', ${providerId}, 0, 0, 'BOOKED', false, '{1440}', false, 3, '[]')`.execute(kysely);
  await sql`UPDATE reminder_mark SET until = now() - interval '1 hour'`.execute(kysely);
}

/**
 * Appointments with a booking each. Of the others, half are of a provider without reminders, and half are before or
 * after those of which reminders are due.
 */
async function fill({ kysely }: Database<CalendarSchema>, name: string, count: number): Promise<void> {
  const isDue = name === 'due';
  await kysely.transaction().execute(async (tx) => {
    await sql`SET LOCAL statement_timeout = 0`.execute(tx);
    await sql`
      WITH made AS (
        INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
        SELECT 'crm', CASE WHEN ${isDue} OR n % 2 = 0 THEN ${providerId}::uuid ELSE ${otherProviderId}::uuid END, ${name} || n, 'room', 'yoga', start, start + interval '1 hour', 1, 1, true, ''
          FROM generate_series(1, ${count}::integer) AS n
         CROSS JOIN LATERAL (SELECT CASE WHEN ${isDue} OR n % 2 = 1 THEN now() + interval '1430 minutes'
           WHEN n % 4 = 0 THEN now() - n * interval '1 minute' ELSE now() + interval '2 days' + n * interval '1 minute' END AS start) AS time
        RETURNING id)
      INSERT INTO participation (crm_id, id, appointment_id, reference, name, state, exempt, changed_at)
      SELECT 'crm', gen_random_uuid(), id, 'of-' || id, 'Grace', 'BOOKED', true, now() - interval '1 day' FROM made`.execute(
      tx,
    );
  });
  await sql`ANALYZE`.execute(kysely);
}

/** How many rows of tables it reads, with or without an index. Nothing is kept, so the tables stay as they are. */
async function remind({ kysely }: Database<CalendarSchema>): Promise<{ written: number; rowsRead: number }> {
  const tx = await kysely.startTransaction().execute();
  try {
    const before = await countRowsRead(tx);
    const request = { crmId: 'crm', providerId, limit: 500, origin: {} };
    const { rows } = await sql<{ answer: { written: number } }>`
      SELECT remind(${JSON.stringify(request)}) AS answer`.execute(tx);
    return { written: rows[0]!.answer.written, rowsRead: (await countRowsRead(tx)) - before };
  } finally {
    await tx.rollback().execute();
  }
}

/** For this session, since it last reported its statistics. */
async function countRowsRead(tx: Transaction<CalendarSchema>): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int8 AS count FROM pg_stat_xact_user_tables`.execute(
    tx,
  );
  return rows[0]!.count;
}
