import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';
import { type CalendarUnderTest, createAppointment, createCustomer, newParticipation, startCalendar } from './calendar-under-test.ts';

/** Called by other functions only, and replaced together with them. */
const internal = new Set(['free_expired_seats', 'scheduling_now']);

describe('the functions that the service calls', () => {
  let calendar: CalendarUnderTest;

  beforeAll(async () => {
    calendar = await startCalendar();
  });
  afterAll(() => calendar?.[Symbol.asyncDispose]());

  it('can gain fields in request and answer while a version that knows neither of them is running', async () => {
    const booking = newParticipation({ appointmentReference: await createAppointment(calendar), customerReference: await createCustomer(calendar) });
    const file = await readFile(new URL('../src/participation/create-participation.sql', import.meta.url), 'utf8');
    const next = file
      .replace('  the_provider uuid;', `  new_priority integer := coalesce((request ->> 'priority')::integer, 0);\n  the_provider uuid;`)
      .replace(`'outcome', 'created',`, `'outcome', 'created', 'priority', new_priority,`);
    expect(next.match(/priority/g)).toHaveLength(4);
    await sql.raw(next).execute(calendar.database.kysely);
    const { participation, created } = await calendar.participations.createParticipation(booking);
    expect([participation?.reference, created]).toEqual([booking.reference, true]);
  });
});

describe('the signature of every function', () => {
  let database: Database<CalendarSchema>;

  beforeAll(async () => {
    const logger = testLogger('booking-functions-test');
    const url = await createMigratedDatabase('calendar', migrateCalendarDatabase);
    database = createDatabase<CalendarSchema>({ url, applicationName: 'test', logger });
  });
  afterAll(() => database?.[Symbol.asyncDispose]());

  it('is one jsonb in and one jsonb out, so that no change can break the running version', async () => {
    const { rows } = await sql<{ name: string; signature: string }>`
      SELECT proname AS name, format('%s -> %s', pg_get_function_identity_arguments(oid), pg_get_function_result(oid)) AS signature
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY proname`.execute(database.kysely);
    const called = rows.filter(({ name }) => !internal.has(name));
    expect(called.map(({ name }) => name)).toContain('create_participation');
    expect(new Set(called.map(({ signature }) => signature))).toEqual(new Set(['request jsonb -> jsonb']));
  });
});
