import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';
import { selectObstacles } from '../src/timeslot/lock-timeslot.ts';
import { maxNamed, type TimeslotRow } from '../src/timeslot/timeslot.ts';
import type { Window } from '../src/timeslot/window.ts';

const count = 5_000;
const crmId = 'crm';
let database: Database<CalendarSchema>;
let timeslot: TimeslotRow;

/**
 * A timeslot full of appointments that bookings have made, right after they were imported: there are no statistics yet.
 */
beforeAll(async () => {
  const url = await createMigratedDatabase('calendar', migrateCalendarDatabase);
  database = createDatabase<CalendarSchema>({
    url,
    applicationName: 'obstacles-test',
    logger: testLogger('obstacles-test'),
    ...longTimeout,
  });
  for (const table of ['appointment', 'participation'])
    await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = false)`.execute(database.kysely);
  timeslot = await database.transaction(async (tx) => {
    const provider = { crmId, id: randomUUIDv7(), reference: 'provider', timeZone: 'Europe/Berlin', version: 1 };
    await tx.insertInto('provider').values(provider).execute();
    await sql`
      WITH made AS (
        INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, starts_at, ends_at, capacity, taken, accept_bookings, state, content_digest, when_empty)
        SELECT ${crmId}, ${provider.id}, 'appointment-' || number, 'room', 'product', timestamptz '2099-06-01Z' + number * interval '15 minutes',
            timestamptz '2099-06-01Z' + (number + 1) * interval '15 minutes', 1, 1, true, 'ACTIVE', '', 'REMOVED'
          FROM generate_series(0, ${count - 1}::integer) AS number
        RETURNING id)
      INSERT INTO participation (crm_id, id, appointment_id, reference, name, state, exempt)
      SELECT ${crmId}, gen_random_uuid(), id, id, 'Name', 'BOOKED', false FROM made`.execute(tx);
    const row = {
      crmId,
      providerId: provider.id,
      reference: 'timeslot',
      resourceReference: 'room',
      startsAt: new Date('2099-06-01Z'),
      endsAt: new Date('2100-06-01Z'),
      raster: 15,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      address: null,
      state: 'BOOKABLE' as const,
      contentDigest: Buffer.alloc(0),
    };
    return tx.insertInto('timeslot').values(row).returningAll().executeTakeFirstOrThrow();
  });
}, 180_000);
afterAll(() => database?.[Symbol.asyncDispose]());

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Loops': number;
  Plans?: PlanNode[];
}

/** The obstacles of a change, and how often participations were looked for. */
async function obstaclesOf(after?: Window): Promise<{ found: number; lookups: number; functions: number }> {
  const query = selectObstacles(database.kysely, timeslot, after).compile();
  const { rowCount } = await database.pool.query(query.sql, [...query.parameters]);
  const { rows } = await database.pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
    `EXPLAIN (ANALYZE, FORMAT JSON) ${query.sql}`,
    [...query.parameters],
  );
  const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];
  const nodes = nodesOf(rows[0]!['QUERY PLAN'][0].Plan);
  const loops = nodes.filter((node) => node['Relation Name'] === 'participation').map((node) => node['Actual Loops']);
  return {
    found: rowCount!,
    lookups: Math.max(...loops),
    functions: nodes.filter((node) => node['Node Type'] === 'Function Scan').length,
  };
}

describe.each(['without statistics', 'with statistics'])(
  `a change of a timeslot with ${count} appointments that bookings have made, %s`,
  (statistics) => {
    beforeAll(async () => {
      if (statistics !== 'without statistics') await sql`ANALYZE`.execute(database.kysely);
    });

    it('looks for the participations of none that it does not orphan', async () => {
      expect(await obstaclesOf({ ...timeslot, endsAt: new Date('2100-01-01Z') })).toEqual({
        found: 0,
        lookups: 0,
        functions: 0,
      });
    });

    it.each([
      ['another raster', { raster: 60 }],
      ['a later start', { startsAt: new Date('2100-01-01Z') }],
      ['a deletion', undefined],
    ])('looks for those of no more than an error names: %s', async (_, change) => {
      expect(await obstaclesOf(change && { ...timeslot, ...change })).toEqual({
        found: maxNamed + 1,
        lookups: maxNamed + 1,
        functions: 0,
      });
    });
  },
);
