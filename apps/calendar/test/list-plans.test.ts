import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { type Compilable, sql } from 'kysely';
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';
import { selectDueAppointments } from '../src/participation/anonymise-old-participations.ts';
import { selectPageEnd } from '../src/timeslot/list-timeslots.ts';

let database: Database<CalendarSchema>;

const crmId = 'crm-1';
const providerId = '00000000-0000-0000-0000-000000000001';
/** The middle of a two-year period. */
const from = new Date('2025-01-01T00:00:00Z');
const to = new Date('2025-01-08T00:00:00Z');
const appointmentCount = 200_000;

beforeAll(async () => {
  const logger = testLogger('calendar-test');
  const url = new URL(await createMigratedDatabase('calendar', migrateCalendarDatabase));
  // What fills the tables takes longer than a statement of a service.
  url.searchParams.set('query_timeout', '600000');
  database = createDatabase<CalendarSchema>({ url: url.href, applicationName: 'test', logger, ...longTimeout });
  await fill();
}, 600_000);
afterAll(() => database?.[Symbol.asyncDispose]());

/**
 * 10 of the providers of 2 CRMs with 20 resources and 50 products each; a fifth of the appointments, those of providers
 * 1 and 2, have a participation, and were made by bookings. These and those of provider 3 have metadata. Two resources of provider 1 have 26,000 blocks before
 * {@link from}, and another one has 40,000, before and after it.
 */
async function fill(): Promise<void> {
  await database.kysely.transaction().execute(async (tx) => {
    await sql`SET LOCAL statement_timeout = 0`.execute(tx);
    // Foreign keys would be checked row by row.
    await sql`SET LOCAL session_replication_role = replica`.execute(tx);
    await sql`
      INSERT INTO provider (crm_id, id, reference, time_zone, version)
      SELECT 'crm-' || n % 2, ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'provider-' || n, 'UTC', 1
        FROM generate_series(0, 999) AS n`.execute(tx);
    await sql`
      INSERT INTO booking_rules (crm_id, provider_id, minimum_notice, change_notice, confirmation, page, reminders, notify_provider, max_per_person, offers)
      SELECT crm_id, id, 0, 0, 'BOOKED', false, '{}', false, 3, '[]' FROM provider`.execute(tx);
    await sql`
      INSERT INTO appointment (crm_id, provider_id, reference, series_id, resource_reference, product_reference,
                               starts_at, ends_at, capacity, taken, accept_bookings, state, content_digest, when_empty, metadata)
      SELECT 'crm-' || n % 2, ('00000000-0000-0000-0000-' || lpad((n % 10)::text, 12, '0'))::uuid, 'appointment-' || n,
             CASE WHEN n % 5 = 0 THEN 'series-' || n / 500 END, 'resource-' || n / 10 % 20, 'product-' || n / 10 % 50,
             timestamptz '2024-01-01Z' + n * interval '316 seconds', timestamptz '2024-01-01Z' + n * interval '316 seconds' + interval '1 hour',
             5, 0, true, CASE WHEN n % 1000 IN (1, 2) THEN 'CANCELLED' ELSE 'ACTIVE' END, '', CASE WHEN n % 10 IN (1, 2) THEN 'REMOVED' END,
             CASE WHEN n % 10 IN (1, 2, 3) THEN jsonb_strip_nulls(jsonb_build_object('order', n::text, 'of', n % 10 || '', 'rare', CASE WHEN n % 2000 = 1 THEN 'yes' END)) END
        FROM generate_series(1, ${appointmentCount}::integer) AS n`.execute(tx);
    await sql`
      INSERT INTO customer (crm_id, id, provider_id, reference, user_name, version)
      SELECT 'crm-' || n % 2, ('00000000-0000-0000-0001-' || lpad(n::text, 12, '0'))::uuid,
             ('00000000-0000-0000-0000-' || lpad((n % 10)::text, 12, '0'))::uuid, 'customer-' || n, 'Name', 1
        FROM generate_series(0, 9999) AS n`.execute(tx);
    await sql`
      INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, state, exempt, metadata)
      SELECT crm_id, uuidv7(), id,
             ('00000000-0000-0000-0001-' || lpad(substring(reference from '-([0-9]+)$')::integer % 10000 || '', 12, '0'))::uuid,
             'of-' || reference, 'BOOKED', false, metadata
        FROM appointment WHERE right(reference, 1) IN ('1', '2')`.execute(tx);
    await sql`
      INSERT INTO participation_message (crm_id, participation_id, version, text)
      SELECT crm_id, id, 1, 'text' FROM participation WHERE reference LIKE '%01'`.execute(tx);
    await sql`INSERT INTO sandbox_clock (crm_id, ahead_ms) SELECT 'sandbox-' || n, n FROM generate_series(1, 1000) AS n`.execute(
      tx,
    );
    await sql`
      INSERT INTO timeslot (crm_id, provider_id, reference, resource_reference, starts_at, ends_at, raster,
                            default_capacity, default_accept_bookings, state, content_digest)
      SELECT crm_id, provider_id, 'timeslot-' || reference, resource_reference, starts_at, starts_at + interval '8 hours', 30, 1, true, 'BOOKABLE', ''
        FROM appointment WHERE reference LIKE '%5_'`.execute(tx);
    await sql`
      INSERT INTO resource_block (crm_id, id, provider_id, reference, resource_reference, starts_at, ends_at)
      SELECT ${crmId}, uuidv7(), ${providerId}, 'block-' || resource || '-' || n, resource,
             timestamptz '2023-12-01Z' + n * interval '20 minutes', timestamptz '2023-12-01Z' + n * interval '20 minutes' + interval '10 minutes'
        FROM generate_series(1, 40000) AS n, unnest(ARRAY['resource-5', 'resource-15', 'blocked']) AS resource
       WHERE n <= 26000 OR resource = 'blocked'`.execute(tx);
  });
  await database.pool.query('SET statement_timeout = 0');
  // Plans depend on it, and it may come by itself at any moment.
  await database.pool.query('VACUUM (ANALYZE)');
}

/** A provider with 20,000 bookable timeslots of a resource that are open at the same moment. */
const full = '00000000-0000-0000-0000-000000000003';

async function fillDay(): Promise<void> {
  await database.pool.query(
    `INSERT INTO timeslot (crm_id, provider_id, reference, resource_reference, starts_at, ends_at, raster, default_capacity, default_accept_bookings, state, content_digest)
     SELECT $1, $2, 'full-' || n, 'full', timestamptz '2025-01-01T08:00Z' + n % 60 * interval '1 minute', timestamptz '2025-01-01T20:00Z', 15, 1, true, 'BOOKABLE', ''
       FROM generate_series(1, 20000) AS n
         ON CONFLICT DO NOTHING`,
    [crmId, full],
  );
}

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: PlanNode[];
}

async function explain(query: Compilable): Promise<PlanNode[]> {
  const { sql: text, parameters } = query.compile();
  const { rows } = await database.pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`EXPLAIN (FORMAT JSON) ${text}`, [
    ...parameters,
  ]);
  const nodes = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
  return nodes(rows[0]!['QUERY PLAN'][0].Plan);
}

/** The tables that the query scans sequentially. */
async function scannedTables(query: Compilable): Promise<string[]> {
  return (await explain(query))
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => node['Relation Name'] ?? '');
}

interface Reading {
  rows: Record<string, unknown>[];
  /** The tables that were scanned sequentially. */
  scanned: string[];
  /** How many entries of indexes were read. */
  entries: number;
  /** The indexes that were searched. */
  indexes: string[];
}

/** Functions that have their main statement planned for each request. */
const plannedEachTime = new Set(['read_appointments', 'read_participations', 'read_calendar']);

/**
 * What a reading function reads. Statements that are planned once have plans for any request, to which a connection
 * changes after a few calls.
 */
async function read(name: string, request: object, { now = new Date() }: { now?: Date } = {}): Promise<Reading> {
  const client = await database.pool.connect();
  try {
    // Otherwise the counters contain what the connection has just done before.
    await client.query('SELECT pg_stat_force_next_flush()');
    await client.query('BEGIN');
    if (!plannedEachTime.has(name)) await client.query('SET LOCAL plan_cache_mode = force_generic_plan');
    await client.query(
      `SET LOCAL scheduling.clock_offset = '${Math.floor((now.getTime() - Date.now()) / 1_000)} seconds'`,
    );
    const { rows } = await client.query<Record<string, unknown>>(`SELECT * FROM ${name}($1)`, [
      JSON.stringify(request),
    ]);
    const { rows: scanned } = await client.query<{ relname: string }>(
      'SELECT relname FROM pg_stat_xact_user_tables WHERE seq_scan > 0',
    );
    const { rows: indexes } = await client.query<{ indexrelname: string; entries: number }>(
      'SELECT indexrelname, pg_stat_get_xact_tuples_returned(indexrelid)::integer AS entries FROM pg_stat_user_indexes WHERE pg_stat_get_xact_numscans(indexrelid) > 0',
    );
    return {
      rows,
      scanned: scanned.map(({ relname }) => relname),
      entries: indexes.reduce((sum, { entries }) => sum + entries, 0),
      indexes: indexes.map(({ indexrelname }) => indexrelname),
    };
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

const scope = { crmId, providerId, providerVersion: 1, archiveAfterDays: 365 };
const position = { startsAt: from, id: '0199d6a5-7c1e-7abc-8def-0123456789ab' };
const period = { from: new Date('2024-01-01T00:00:00Z'), to: new Date('2026-01-01T00:00:00Z') };

describe(`with ${appointmentCount} appointments, no table is scanned sequentially`, () => {
  it.each([
    ['all of a provider', {}],
    ['by product', { productReference: 'product-1' }],
    ['by resource', { resourceReference: 'resource-1' }],
    ['by state', { state: 'CANCELLED' }],
    ['that are not cancelled', { state: 'ACTIVE' }],
    ['by period', { from, to }],
    ['by product and period', { productReference: 'product-1', from, to }],
    ['by resource and period', { resourceReference: 'resource-1', from, to }],
  ])('for the list of appointments %s, of which a part reads hardly more than it returns', async (_, changes) => {
    for (const after of [undefined, position]) {
      const request = { ...scope, ...changes, includeArchived: true, after, size: 50, participations: 500 };
      const { rows, scanned, entries } = await read('read_appointments', request);
      expect(scanned).toEqual([]);
      expect(rows.length).toBeGreaterThan(1);
      // Of each: the entry in the list, the row, up to two participations that are counted and read, their customers
      // and messages.
      expect(entries).toBeLessThan(10 * rows.length + 10);
    }
  });

  it('for the list of appointments that are not archived, and by product and resource', async () => {
    const both = { productReference: 'product-1', resourceReference: 'resource-1' };
    for (const [changes, includeArchived] of [
      [{}, false],
      [both, false],
      [both, true],
    ] as const) {
      const { scanned } = await read('read_appointments', {
        ...scope,
        ...changes,
        includeArchived,
        size: 50,
        participations: 500,
      });
      expect(scanned).toEqual([]);
    }
  });

  it.each([
    ['all of a provider', {}],
    ['by period', { from, to }],
    ['by customer', { customerId: '00000000-0000-0000-0001-000000000011' }],
    ['by customer and period', { customerId: '00000000-0000-0000-0001-000000000011', from, to }],
  ])('for the list of participations %s, of which a part reads hardly more than it returns', async (_, changes) => {
    // The middle of both periods.
    for (const after of [
      undefined,
      { startsAt: new Date('2025-01-04T00:00:00Z'), appointmentId: position.id, participationId: position.id },
    ]) {
      const { rows, scanned, entries, indexes } = await read('read_participations', {
        ...scope,
        ...changes,
        after,
        size: 50,
        rows: 500,
      });
      expect(scanned).toEqual([]);
      expect(indexes).toContain('customerId' in changes ? 'participation_by_customer' : 'appointment_by_start');
      expect(indexes).not.toContain('customerId' in changes ? 'appointment_by_start' : 'participation_by_customer');
      // Of each: the entry in the list, the appointment, the row, its customer and messages; and those of the customer,
      // 20 of which the part may list few.
      expect(entries).toBeLessThan(10 * rows.length + 100);
    }
  });

  it.each([
    ['read_appointments', 'appointment_by_metadata', { size: 150, participations: 500 }],
    ['read_participations', 'participation_by_metadata', { size: 150, rows: 500 }],
  ])('for %s by metadata, which reads hardly more than those that have it', async (name, index, part) => {
    for (const [metadata, count] of [
      [{ order: '4711' }, 1],
      [{ rare: 'yes' }, 100],
      [{ rare: 'yes', of: '1' }, 100],
      // Only others have it: another provider, and another CRM.
      [{ of: '3' }, 0],
      [{ of: '2' }, 0],
    ] as const) {
      const { rows, scanned, entries, indexes } = await read(name, {
        ...scope,
        includeArchived: true,
        ...part,
        metadata,
      });
      expect(scanned).toEqual([]);
      expect(indexes).toContain(index);
      expect(rows.filter(({ id, participation }) => id ?? participation)).toHaveLength(count);
      expect(entries).toBeLessThan(10 * count + 20);
    }
  });

  it('for participations that no filter matches, which end a part after a limited number of rows', async () => {
    const withoutAny = { providerId: '00000000-0000-0000-0000-000000000003' };
    for (const changes of [withoutAny, { state: 'CANCELED' }, { changedSince: new Date('2099-01-01T00:00:00Z') }]) {
      const { rows, scanned, entries } = await read('read_participations', {
        ...scope,
        ...changes,
        size: 50,
        rows: 500,
      });
      expect(scanned).toEqual([]);
      expect(rows).toMatchObject([{ participation: null, appointmentId: expect.any(String) }]);
      // The appointments, which may have one participation each.
      expect(entries).toBeLessThan(2 * 510);
    }
  });

  it.each([
    ['a provider', null, 5_000, 'appointment_by_start'],
    // A twentieth of those of the provider in that time, without the cancelled ones and those without anybody.
    ['a resource', 'resource-5', 540, 'appointment_by_resource'],
  ])('for a calendar of %s, which reads hardly more than it shows', async (_, resourceReference, count, index) => {
    const subscriptionId = randomUUIDv7();
    const row = { crmId, id: subscriptionId, providerId, reference: subscriptionId, details: 'CONTACT' as const };
    const secretHash = randomBytes(32);
    await database.kysely
      .insertInto('calendarSubscription')
      .values({ ...row, secretHash, resourceReference })
      .execute();
    const { rows, scanned, entries, indexes } = await read('read_calendar', { crmId, subscriptionId }, { now: from });
    expect((rows[0]!['facts'] as string).split('\n')).toHaveLength(count);
    // That have a row or two.
    expect(scanned.filter((table) => table !== 'calendar_subscription' && table !== 'shown_appointment')).toEqual([]);
    expect(indexes).toContain(index);
    // Of each: the entry in the list, the row, twice, whether it has a participation, those that are counted and shown, and
    // their customers.
    expect(entries).toBeLessThan(10 * count);
  });

  it('for the list of a day, with everybody in it', async () => {
    const period = { dayStart: '2025-01-02T00:00:00Z', dayEnd: '2025-01-03T00:00:00Z' };
    const { rows, scanned, entries, indexes } = await read('read_day', { crmId, providerId, ...period, limit: 1_000 });
    const { appointments, booked } = rows[0]!['read_day'] as { appointments: unknown[]; booked: number };
    expect(appointments.length).toBeGreaterThan(20);
    expect(booked).toBe(appointments.length);
    expect(scanned).toEqual([]);
    expect(indexes).toContain('appointment_by_start');
    // Of each: the row, twice, whether it has a participation, that one, twice, and its customer.
    expect(entries).toBeLessThan(10 * appointments.length);
  });

  it('for appointments that are known, with their participations', async () => {
    const { rows } = await read('read_appointments', {
      ...scope,
      includeArchived: true,
      size: 50,
      participations: 500,
    });
    const ids = rows.map(({ id }) => id as string).slice(0, 50);
    const {
      rows: texts,
      scanned,
      entries,
    } = await read('read_appointments_by_id', { crmId, ids, archiveAfterDays: 365 });
    expect(texts).toHaveLength(50);
    expect(scanned).toEqual([]);
    expect(entries).toBeLessThan(10 * ids.length);
  });

  it('for a part of the list of timeslots, which reads hardly more than it returns', async () => {
    expect(
      await scannedTables(
        selectPageEnd(database.kysely, { ...scope, ...period, resourceReference: 'resource-5' }, position, 500),
      ),
    ).toEqual([]);
    const list = { ...scope, resourceReference: 'resource-5', rows: 500 };
    for (const changes of [
      { from, to },
      { ...period, timeslot: position },
      { ...period, timeslot: position, until: { ...position, startsAt: to } },
    ]) {
      const { rows, scanned, entries } = await read('read_timeslots', { ...list, ...changes });
      expect(scanned).toEqual([]);
      expect(rows.length).toBeGreaterThan(5);
      expect(entries).toBeLessThan(10 * rows.length + 10);
    }
  });

  it('for timeslots that contain more than a part may have', async () => {
    const { rows: listed } = await database.pool.query<{ id: string }>(
      "SELECT id FROM timeslot WHERE crm_id = $1 AND provider_id = $2 AND resource_reference = 'resource-5' ORDER BY starts_at, id LIMIT 100",
      [crmId, providerId],
    );
    expect(listed).toHaveLength(100);
    const ids = listed.map(({ id }) => id);
    // Each contains all appointments of the resource: more than twice as many as a part may have rows.
    await database.pool.query(
      "UPDATE timeslot SET starts_at = '2024-01-01Z', ends_at = '2026-01-01Z' WHERE id = ANY($1)",
      [ids],
    );
    for (const appointment of [undefined, { startsAt: from, id: position.id }]) {
      const { rows, scanned, entries } = await read('read_timeslots', { ...scope, ids, appointment, rows: 500 });
      expect(scanned).toEqual([]);
      expect(rows).toHaveLength(501);
      // One of them to see that somebody is in it.
      expect(entries).toBeLessThan(7 * 501);
    }
  });

  it.each([
    ['of a resource', { resourceReference: 'resource-5' }],
    ['of a provider', {}],
    ['of a provider and product', { productReference: 'product-1' }],
  ])('for the slots %s, of which a part reads no more than its period and a day before it', async (_, filter) => {
    const { rows, scanned, entries } = await read(
      'read_slots',
      { ...scope, ...filter, from, to, ignoreNotice: true, rows: 2_000 },
      { now: from },
    );
    expect(scanned).toEqual([]);
    expect(rows).toMatchObject([
      {
        from: from.getTime(),
        to: to.getTime(),
        isLimited: false,
        timeslots: expect.arrayContaining([expect.anything()]),
      },
    ]);
    // In these eight days there are about 220 appointments of the provider, of which each is read up to three times,
    // with its participations.
    expect(entries).toBeLessThan(2_000);
  });

  it.each([
    ['of a provider', {}],
    ['of a resource', { resourceReference: 'full' }],
  ])(
    'for the slots %s whose timeslots overlap, of which a part reads hardly more than it may have',
    async (_, filter) => {
      await fillDay();
      const { rows, scanned, entries } = await read(
        'read_slots',
        { ...scope, providerId: full, ...filter, from: '2025-01-01T12:00Z', to, ignoreNotice: true, rows: 500 },
        { now: from },
      );
      expect(scanned).toEqual([]);
      // None of them is complete at any moment.
      expect(rows).toMatchObject([
        { from: Date.parse('2025-01-01T12:00Z'), isLimited: true, timeslots: expect.objectContaining({ length: 500 }) },
      ]);
      // Each is found, then read to be written, and once more for its resource.
      expect(entries).toBeLessThan(4 * 500);
    },
  );

  it('for a booking, which reads no more than the day before it', async () => {
    const [timeslot] = await database.kysely
      .selectFrom('timeslot')
      .selectAll()
      .where('crmId', '=', crmId)
      .where('providerId', '=', providerId)
      .where('startsAt', '>', from)
      .orderBy('startsAt')
      .limit(1)
      .execute();
    const { reference: timeslotReference, startsAt } = timeslot!;
    const booking = {
      crmId,
      providerId,
      providerVersion: 1,
      timeslotReference,
      startsAt,
      productReference: 'new',
      newReference: 'new',
      contentDigest: '',
      ignoreNotice: true,
    };
    const participation = {
      id: '0199d6a5-7c1e-7abc-8def-0123456789ab',
      reference: 'new',
      state: 'RESERVED',
      sendMails: false,
    };
    const origin = { request_id: 'request', traceparent: null };
    const { rows, scanned, entries } = await read('book_slot', { ...booking, ...participation, origin }, { now: from });
    expect(scanned).toEqual([]);
    // An hour of the same resource, on another step of the same timeslot, is occupied by the appointment that the
    // timeslot was made for.
    expect(rows).toMatchObject([{ book_slot: { error: { code: 'slot.unavailable', reason: 'taken' } } }]);
    expect(entries).toBeLessThan(100);
  });

  it('for the blocks of a resource, without reading those of more than a day before the period', async () => {
    const request = { crmId, providerId, resourceReference: 'blocked', from, to, rows: 251 };
    const { rows, scanned, entries } = await read('read_blocks', request);
    expect(scanned).toEqual([]);
    expect(rows).toHaveLength(251);
    // There are three in an hour.
    expect(entries).toBeLessThan(8 * 24 * 3 + 10);
  });

  it('for the appointments of a series, without reading others of the provider', async () => {
    const ofProvider = '00000000-0000-0000-0000-000000000005';
    const request = { crmId, providerId: ofProvider, providerVersion: 1, seriesId: 'series-100', origin: {} };
    const { rows, scanned, entries } = await read('delete_appointments', request);
    expect(rows).toMatchObject([{ delete_appointments: { id: expect.any(String) as string } }]);
    // Which is empty.
    expect(scanned).toEqual(['removed_participation']);
    expect(entries).toBeLessThan(2_000);
  });

  it('for appointments whose participations are to be anonymised, without reading those that are not due or were anonymised before', async () => {
    const query = selectDueAppointments({ periods: [{ crmId, anonymiseAfterDays: 30 }], anonymiseAfterDays: 365 }, 500);
    const nodes = await explain({ compile: () => query.compile(database.kysely) });
    expect(nodes.filter((node) => node['Relation Name'] === 'appointment')).toMatchObject([
      { 'Index Name': 'appointment_to_anonymise', 'Index Cond': expect.stringContaining('ends_at <= ') as string },
    ]);
  });

  it('and a missing index would be detected', async () => {
    const query = database.kysely.selectFrom('appointment').select('id').where('description', '=', 'x');
    expect(await scannedTables(query)).toEqual(['appointment']);
  });
});
