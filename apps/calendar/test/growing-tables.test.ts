import { createDatabase, startGrowthAnalysis } from '@scheduling/postgres';
import { createTestDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { type Kysely, sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { expect, it } from 'vitest';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';

const logger = testLogger('growing-tables-test');
/** While a table is small, reading all of it is a plan that suggests itself. */
const imports = [500, 20_000];

const acts = [
  ['booked', book],
  ['created appointments', create],
] as const;

it.each(acts.flatMap(([what, act]) => imports.map((count) => [what, count, act] as const)))(
  'a session that %s while the tables were empty reads few rows for it right after an import of %i',
  async (_what, many, act) => {
    const url = await createTestDatabase();
    await migrateCalendarDatabase(url, logger);
    // One connection: it caches the plans made while the tables were empty.
    await using session = createDatabase<CalendarSchema>({
      url,
      applicationName: 'session',
      logger,
      maxConnections: 1,
    });
    const importUrl = new URL(url);
    // What fills the tables takes longer than a statement of a service.
    importUrl.searchParams.set('query_timeout', '600000');
    await using importer = createDatabase<CalendarSchema>({
      url: importUrl.href,
      applicationName: 'importer',
      logger,
      ...longTimeout,
    });
    await importer.transaction((tx) => importAppointments(tx, 1, 1));
    for (let count = 0; count < 10; count += 1) await act(session.kysely);

    await using _analysis = startGrowthAnalysis({ database: importer, logger });
    await importer.transaction((tx) => importAppointments(tx, 2, many));
    await eventually(async () => expect(await assumedRows(importer.kysely)).toBeGreaterThanOrEqual(many));
    expect(await countRowsRead(session.kysely, act)).toBeLessThan(50);
  },
);

/** Customers, and appointments with one participation each and free seats, numbered from `first`. */
async function importAppointments(db: Kysely<CalendarSchema>, first: number, last: number): Promise<void> {
  await sql`SET LOCAL statement_timeout = 0`.execute(db);
  await sql`
    INSERT INTO provider (crm_id, id, reference, time_zone, version) VALUES ('crm', ${provider}, 'provider', 'Europe/Berlin', 1) ON CONFLICT DO NOTHING`.execute(
    db,
  );
  await sql`
    INSERT INTO customer (crm_id, id, provider_id, reference, user_name, version)
    SELECT 'crm', gen_random_uuid(), ${provider}, 'customer-' || number, 'Grace', 1 FROM generate_series(${first}::int, ${last}::int) AS number`.execute(
    db,
  );
  await sql`
    WITH made AS (
      INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
      SELECT 'crm', ${provider}, 'appointment-' || number, 'room', 'yoga', now(), now() + interval '1 hour', 100000, 1, true, ''
        FROM generate_series(${first}::int, ${last}::int) AS number
      RETURNING id)
    INSERT INTO participation (crm_id, id, appointment_id, reference, name, state, exempt)
    SELECT 'crm', gen_random_uuid(), id, 'participation-' || id, 'Grace', 'BOOKED', true FROM made`.execute(db);
}

const provider = randomUUIDv7();

async function book(db: Kysely<CalendarSchema>): Promise<void> {
  const id = randomUUIDv7();
  const booking = {
    crmId: 'crm',
    providerId: provider,
    providerVersion: 1,
    appointmentReference: 'appointment-1',
    customerReference: 'customer-1',
    id,
    reference: id,
    state: 'BOOKED',
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: false,
    origin: { request_id: 'request', traceparent: null },
  };
  const { rows } = await sql<{
    result: { created: boolean };
  }>`SELECT create_participation(${JSON.stringify(booking)}) AS result`.execute(db);
  expect(rows[0]!.result.created).toBe(true);
}

async function create(db: Kysely<CalendarSchema>): Promise<void> {
  const embedded = () => ({
    id: randomUUIDv7(),
    reference: randomUUIDv7(),
    name: 'Grace',
    email: 'g@customers.example',
    state: 'BOOKED',
  });
  const appointment = {
    crmId: 'crm',
    providerId: provider,
    providerVersion: 1,
    archiveAfterDays: 365,
    reference: randomUUIDv7(),
    resourceReference: 'room',
    productReference: 'yoga',
    startsAt: '2031-01-01T08:00Z',
    endsAt: '2031-01-01T09:00Z',
    capacity: 2,
    acceptBookings: true,
    contentDigest: '',
    participations: [embedded(), embedded()],
    origin: { request_id: 'request', traceparent: null },
  };
  const { rows } = await sql<{
    result: { created: boolean };
  }>`SELECT create_appointment(${JSON.stringify(appointment)}) AS result`.execute(db);
  expect(rows[0]!.result.created).toBe(true);
}

/** For how many rows of each table that an import fills plans are made: of the one that is analysed last. */
async function assumedRows(db: Kysely<CalendarSchema>): Promise<number> {
  const { rows } = await sql<{
    count: number;
  }>`SELECT min(reltuples)::integer AS count FROM pg_class WHERE relname IN ('customer', 'appointment', 'participation')`.execute(
    db,
  );
  return rows[0]!.count;
}

/** The number of table rows that it reads, with or without an index. Nothing is kept, so the tables stay as they are. */
async function countRowsRead(
  db: Kysely<CalendarSchema>,
  act: (db: Kysely<CalendarSchema>) => Promise<void>,
): Promise<number> {
  const tx = await db.startTransaction().execute();
  try {
    const before = await rowsRead(tx);
    await act(tx);
    return (await rowsRead(tx)) - before;
  } finally {
    await tx.rollback().execute();
  }
}

/** For this session, since it last reported its statistics. */
async function rowsRead(tx: Transaction<CalendarSchema>): Promise<number> {
  const { rows } = await sql<{
    count: number;
  }>`SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int8 AS count FROM pg_stat_xact_user_tables`.execute(tx);
  return rows[0]!.count;
}
