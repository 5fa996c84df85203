import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, testLogger } from '@scheduling/testing';
import { type Compilable, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { selectTargets } from '../src/appointment/delete-appointments.ts';
import { selectAppointmentsPart } from '../src/appointment/list-appointments.ts';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';
import { selectParticipationsOfAppointments } from '../src/participation/participation.ts';
import { selectPageEnd, selectRestOfPage, selectTimeslots } from '../src/timeslot/list-timeslots-part.ts';
import { selectTimeslotsPart } from '../src/timeslot/list-timeslots.ts';
import { selectKeys } from '../src/timeslot/read-part.ts';
import { selectAppointmentsIn } from '../src/timeslot/timeslot.ts';

let database: Database<CalendarSchema>;

const crmId = 'crm-1';
const providerId = '00000000-0000-0000-0000-000000000001';
/** The middle of a two-year period. */
const from = new Date('2025-01-01T00:00:00Z');
const to = new Date('2025-01-08T00:00:00Z');
const appointmentCount = 200_000;

beforeAll(async () => {
  const logger = testLogger('calendar-test');
  const url = await createMigratedDatabase('calendar', migrateCalendarDatabase);
  database = createDatabase<CalendarSchema>({ url, applicationName: 'test', logger });
  await fill();
}, 600_000);
afterAll(() => database?.[Symbol.asyncDispose]());

/** 10 providers of 2 CRMs with 20 resources and 50 products each; a fifth of the appointments, those of providers 1 and 2, have a participation. */
async function fill(): Promise<void> {
  await database.kysely.transaction().execute(async (tx) => {
    await sql`SET LOCAL statement_timeout = 0`.execute(tx);
    // Foreign keys would be checked row by row.
    await sql`SET LOCAL session_replication_role = replica`.execute(tx);
    await sql`
      INSERT INTO provider (crm_id, id, reference, time_zone, version)
      SELECT 'crm-' || n % 2, ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'provider-' || n, 'UTC', 1
        FROM generate_series(0, 9) AS n`.execute(tx);
    await sql`
      INSERT INTO appointment (crm_id, provider_id, reference, series_id, resource_reference, product_reference,
                               starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
      SELECT 'crm-' || n % 2, ('00000000-0000-0000-0000-' || lpad((n % 10)::text, 12, '0'))::uuid, 'appointment-' || n,
             CASE WHEN n % 5 = 0 THEN 'series-' || n / 500 END, 'resource-' || n / 10 % 20, 'product-' || n / 10 % 50,
             timestamptz '2024-01-01Z' + n * interval '316 seconds', timestamptz '2024-01-01Z' + n * interval '316 seconds' + interval '1 hour',
             5, 0, true, ''
        FROM generate_series(1, ${appointmentCount}::integer) AS n`.execute(tx);
    await sql`
      INSERT INTO customer (crm_id, id, provider_id, reference, user_name, version)
      SELECT 'crm-' || n % 2, ('00000000-0000-0000-0001-' || lpad(n::text, 12, '0'))::uuid,
             ('00000000-0000-0000-0000-' || lpad((n % 10)::text, 12, '0'))::uuid, 'customer-' || n, 'Name', 1
        FROM generate_series(0, 9999) AS n`.execute(tx);
    await sql`
      INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, state, exempt)
      SELECT crm_id, uuidv7(), id,
             ('00000000-0000-0000-0001-' || lpad(substring(reference from '-([0-9]+)$')::integer % 10000 || '', 12, '0'))::uuid,
             'of-' || reference, 'BOOKED', false
        FROM appointment WHERE right(reference, 1) IN ('1', '2')`.execute(tx);
    await sql`
      INSERT INTO participation_message (crm_id, participation_id, version, text)
      SELECT crm_id, id, 1, 'text' FROM participation WHERE reference LIKE '%01'`.execute(tx);
    await sql`
      INSERT INTO timeslot (crm_id, provider_id, reference, resource_reference, starts_at, ends_at, raster,
                            default_capacity, default_accept_bookings, state, content_digest)
      SELECT crm_id, provider_id, 'timeslot-' || reference, resource_reference, starts_at, starts_at + interval '8 hours', 30, 1, true, 'BOOKABLE', ''
        FROM appointment WHERE reference LIKE '%5_'`.execute(tx);
  });
  await database.pool.query('SET statement_timeout = 0; ANALYZE');
}

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

async function explain(query: Compilable, options = ''): Promise<PlanNode[]> {
  const { sql: text, parameters } = query.compile();
  const { rows } = await database.pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`EXPLAIN (${options}FORMAT JSON) ${text}`, [...parameters]);
  const nodes = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
  return nodes(rows[0]!['QUERY PLAN'][0].Plan);
}

/** The tables that the query scans sequentially. */
async function scannedTables(query: Compilable): Promise<string[]> {
  return (await explain(query)).filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name'] ?? '');
}

/** How many entries of tables and indexes the executed query read. */
function rowsRead(nodes: PlanNode[]): number {
  return nodes
    .filter((node) => node['Relation Name'] !== undefined)
    .reduce((sum, node) => sum + (node['Actual Rows']! + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']!, 0);
}

/** How the query accesses its rows: an index returns them in list order, so reading a part of the list costs no more than that part. */
async function kindsOfNodes(query: Compilable): Promise<Set<string>> {
  return new Set((await explain(query)).map((node) => node['Node Type']));
}

const filter = { crmId, providerId, archiveAfterDays: 365, includeArchived: false };
const position = { startsAt: from, id: '0199d6a5-7c1e-7abc-8def-0123456789ab' };

describe(`with ${appointmentCount} appointments, no table is scanned sequentially`, () => {
  it.each([
    ['all of a provider', {}],
    ['by product', { productReference: 'product-1' }],
    ['by resource', { resourceReference: 'resource-1' }],
    ['by period', { from, to }],
    ['by product and period', { productReference: 'product-1', from, to }],
    ['by resource and period', { resourceReference: 'resource-1', from, to }],
  ])('for the list of appointments %s', async (_, changes) => {
    for (const includeArchived of [true, false]) {
      for (const after of [undefined, position]) {
        const query = selectAppointmentsPart(database.kysely, { ...filter, ...changes, includeArchived }, after, 51);
        expect(await scannedTables(query)).toEqual([]);
        const kinds = await kindsOfNodes(query);
        expect(kinds).toContain('Index Scan');
        expect(kinds).not.toContain('Sort');
        expect(kinds).not.toContain('Incremental Sort');
      }
    }
  });

  it('for the list of appointments by product and resource, which has few rows, so two indexes may be intersected and the result sorted', async () => {
    const changes = { productReference: 'product-1', resourceReference: 'resource-1' };
    for (const includeArchived of [true, false]) {
      for (const after of [undefined, position]) {
        expect(await scannedTables(selectAppointmentsPart(database.kysely, { ...filter, ...changes, includeArchived }, after, 51))).toEqual([]);
      }
    }
  });

  it('for the participations of a part of a list', async () => {
    const rows = await selectAppointmentsPart(database.kysely, { ...filter, includeArchived: true }, undefined, 50).execute();
    expect(rows.filter(({ json }) => json !== null)).toHaveLength(50);
    const query = selectParticipationsOfAppointments(database.kysely, crmId, rows.map((row) => row.id));
    expect(await scannedTables(query)).toEqual([]);
  });

  it('for the list of timeslots with their appointments', async () => {
    const period = { crmId, providerId, resourceReference: 'resource-5', from, to };
    for (const after of [undefined, position]) {
      for (const limit of [undefined, 51]) {
        expect(await scannedTables(selectTimeslotsPart(database.kysely, period, after, limit))).toEqual([]);
      }
    }
    const rows = await selectTimeslotsPart(database.kysely, period, undefined, 50).execute();
    expect(rows.length).toBeGreaterThan(0);
    expect(await scannedTables(selectAppointmentsIn(database.kysely, crmId, rows.map((row) => row.id), 365))).toEqual([]);
  });

  it('for a part of the list of timeslots, which reads hardly more keys than it has rows', async () => {
    const period = { crmId, providerId, resourceReference: 'resource-5', from, to };
    const scope = { crmId, providerId, archiveAfterDays: 365 };
    for (const limits of [{}, { until: position }, { until: position, appointment: position }]) {
      const query = selectRestOfPage(database.kysely, period, { timeslot: position, rows: 500, ...limits });
      expect(await scannedTables(query)).toEqual([]);
    }
    expect(await scannedTables(selectPageEnd(database.kysely, period, position, 500))).toEqual([]);

    const rows = await selectTimeslotsPart(database.kysely, period, undefined, 500).execute();
    expect(await scannedTables(selectTimeslots(database.kysely, scope, rows.map(({ id }) => id)))).toEqual([]);
    // Each contains all appointments of the resource: more than twice as many as a part may have rows.
    const long = rows.map((row) => ({ ...row, startsAt: new Date('2024-01-01T00:00:00Z'), endsAt: new Date('2026-01-01T00:00:00Z') }));
    expect(long.length).toBeGreaterThan(5);
    for (const after of [undefined, { startsAt: from, id: position.id }]) {
      const query = { compile: () => selectKeys(scope, long, { after, rows: 500 }).compile(database.kysely) };
      const { rows: keys } = await selectKeys(scope, long, { after, rows: 500 }).execute(database.kysely);
      expect(keys).toHaveLength(501);
      const nodes = await explain(query, 'ANALYZE, ');
      expect(new Set(nodes.filter((node) => node['Relation Name'] !== undefined).map((node) => node['Node Type']))).toEqual(new Set(['Index Only Scan']));
      expect(rowsRead(nodes)).toBeLessThan(4 * 501);
    }
  });

  it('for the appointments of a series, without reading others of the provider', async () => {
    const query = selectTargets(database.kysely, { crmId, providerId, target: { seriesId: 'series-100' } });
    expect(await scannedTables(query)).toEqual([]);
    expect((await explain(query)).map((node) => node['Index Cond'] ?? '')).toContainEqual(expect.stringContaining('series_id'));
  });

  it('and a missing index would be detected', async () => {
    const query = database.kysely.selectFrom('appointment').select('id').where('description', '=', 'x');
    expect(await scannedTables(query)).toEqual(['appointment']);
  });
});
