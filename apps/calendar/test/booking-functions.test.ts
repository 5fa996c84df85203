import { callFunction, createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateCalendarDatabase } from '../src/db/migrate.ts';
import type { CalendarSchema } from '../src/db/schema.ts';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  newParticipation,
  startCalendar,
} from './calendar-under-test.ts';

/**
 * Called by other functions and triggers only, and replaced together with them; and by indexes, and never changed
 * (`address_key`).
 */
const internal = new Set([
  'add_message',
  'add_prepared_customer',
  'address_digest',
  'address_key',
  'append_appointment_changed',
  'append_participation_changed',
  'append_participation_removed',
  'appointment_answer',
  'appointment_json',
  'appointment_slot_details',
  'archived_until',
  'await_decision',
  'booking_bounds',
  'booking_content',
  'cancel_participations',
  'change_state',
  'claim_place',
  'confirm_locked_hold',
  'conflicts_of',
  'customer_to_book_for',
  'day_appointments',
  'embed_participations',
  'end_if_empty',
  'ended',
  'ends_without',
  'epoch_ms',
  'error_answer',
  'expiry_of',
  'first_timeslots',
  'free_expired_seats',
  'future_bookings',
  'has_mail',
  'has_mail_on_creation',
  'has_other_start',
  'insert_participation',
  'invites',
  'is_active',
  'is_place',
  'is_present_provider',
  'is_step',
  'is_unavailable',
  'join_appointment',
  'known_customer',
  'last_mailable_version',
  'link_refusal',
  'location_json',
  'lock_appointment',
  'lock_participation',
  'missing_timeslot_answer',
  'moment_json',
  'near_appointments',
  'near_timeslots',
  'new_mail_event',
  'next_expirations',
  'no_seat_answer',
  'note_invited',
  'note_participation',
  'occupancy',
  'occupied_key',
  'offering_timeslots',
  'open_windows',
  'overlapping_appointments',
  'overlapping_blocks',
  'overlapping_timeslots',
  'own_booking_rights',
  'own_move_refusal',
  'page_bookings_of_day',
  'participation_changed_data',
  'participation_json',
  'participation_subject',
  'participation_text',
  'participation_waits',
  'present_booking_answer',
  'price_json',
  'reference_rejection',
  'refusal_of_invitation',
  'requests_wait',
  'retry_answer',
  'scheduling_now',
  'set_changed_at',
  'set_daily_list_mark',
  'set_reminder_marks',
  'shown_of',
  'slot_details',
  'slot_of',
  'take_place',
  'takes_seat',
  'timeslot_json',
  'transition_error',
  'transitions',
  'unavailable_answer',
  'closed_answer',
  'forget_notes',
  'no_step_answer',
  'note_error',
  'unmark_appointment',
  'unmark_with_seats',
  'update_participants',
]);

describe('the functions that the service calls', () => {
  let calendar: CalendarUnderTest;

  beforeAll(async () => {
    calendar = await startCalendar();
  });
  afterAll(() => calendar?.[Symbol.asyncDispose]());

  it('can gain fields in request and answer while a version that knows neither of them is running', async () => {
    const booking = newParticipation({
      appointmentReference: await createAppointment(calendar),
      customerReference: await createCustomer(calendar),
    });
    const file = await readFile(new URL('../src/participation/create-participation.sql', import.meta.url), 'utf8');
    const next = file
      .replace(
        '  locked record;',
        `  new_priority integer := coalesce((request ->> 'priority')::integer, 0);\n  locked record;`,
      )
      .replace(`'reclaimed', locked.reclaimed`, `'reclaimed', locked.reclaimed, 'priority', new_priority`);
    expect(next.match(/priority/g)).toHaveLength(4);
    await sql.raw(next).execute(calendar.database.kysely);
    const { participation, created } = await calendar.participations.createParticipation(booking);
    expect([participation?.reference, created]).toEqual([booking.reference, true]);
  });

  it('decide again about a booking that disappears while they have not locked it', async () => {
    const { rows } = await sql`SELECT present_booking_answer('one', ${randomUUIDv7()}, NULL) AS answer`.execute(
      calendar.database.kysely,
    );
    expect(rows).toEqual([{ answer: { retry: 'stale' } }]);
  });

  it('write no index of the rows that a booking and a move change', async () => {
    const booking = newParticipation({
      appointmentReference: await createAppointment(calendar, { capacity: 2 }),
      customerReference: await createCustomer(calendar),
    });
    // Calendar fetches the customer.
    await calendar.participations.createParticipation({ ...booking, reference: freshReference('first') });
    const { appointmentReference, customerReference, reference } = booking;
    const provider = await calendar.database.kysely
      .selectFrom('provider')
      .selectAll()
      .where('crmId', '=', booking.crmId)
      .where('reference', '=', booking.providerReference)
      .executeTakeFirstOrThrow();
    const common = {
      crmId: booking.crmId,
      providerId: provider.id,
      providerVersion: provider.version,
      ignoreCapacity: false,
      sendMails: false,
      origin: { request_id: 'request', traceparent: null },
    };
    const id = randomUUIDv7();
    const request = {
      ...common,
      id,
      appointmentReference,
      customerReference,
      reference,
      state: 'BOOKED',
      onDuplicateRaise: false,
    };
    const change = { ...common, participationId: id, state: 'DELETED' };
    const { rows } = await calendar.database.transaction(async (tx) => {
      expect(await callFunction(tx, { name: 'create_participation', request, locks: '' })).toMatchObject({
        created: true,
      });
      expect(await callFunction(tx, { name: 'update_participation', request: change, locks: '' })).toMatchObject({
        seats: -1,
      });
      return sql`
        SELECT relname, n_tup_upd::int AS updates, n_tup_hot_upd::int AS without_index FROM pg_stat_xact_user_tables
         WHERE relname IN ('appointment', 'participation') ORDER BY relname`.execute(tx);
    });
    expect(rows).toEqual([
      { relname: 'appointment', updates: 2, withoutIndex: 2 },
      { relname: 'participation', updates: 1, withoutIndex: 1 },
    ]);
  });
});

describe('the signature of every function', () => {
  let database: Database<CalendarSchema>;

  beforeAll(async () => {
    const logger = testLogger('booking-functions-test');
    const url = await createMigratedDatabase('calendar', migrateCalendarDatabase);
    database = createDatabase<CalendarSchema>({ url, applicationName: 'test', logger, ...longTimeout });
  });
  afterAll(() => database?.[Symbol.asyncDispose]());

  it('is one jsonb in and one jsonb out, or the rows that the running version reads, so that no change can break it', async () => {
    const { rows } = await sql<{ name: string; signature: string; reads: boolean }>`
      SELECT proname AS name, format('%s -> %s', pg_get_function_identity_arguments(oid), pg_get_function_result(oid)) AS signature, proretset AS reads
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY proname`.execute(database.kysely);
    const called = rows.filter(({ name }) => !internal.has(name));
    expect(called.map(({ name }) => name)).toContain('create_participation');
    expect(new Set(called.filter(({ reads }) => !reads).map(({ signature }) => signature))).toEqual(
      new Set(['request jsonb -> jsonb']),
    );
    // A function with another column has another name, and this one stays until no running version calls it.
    expect(called.filter(({ reads }) => reads).map(({ name, signature }) => `${name}: ${signature}`)).toEqual([
      'read_appointment: request jsonb -> TABLE(appointment text)',
      'read_appointments: request jsonb -> TABLE(id uuid, "startsAt" timestamp with time zone, appointment text)',
      'read_appointments_by_id: request jsonb -> TABLE(appointment text)',
      'read_blocks: request jsonb -> TABLE(id uuid, reference text, "resourceReference" text, "startsAt" timestamp with time zone, "endsAt" timestamp with time zone, note text)',
      'read_calendar: request jsonb -> TABLE(digest text, "changedAt" bigint, fingerprint text, "comparedAt" timestamp with time zone, "isUnchanged" boolean, facts text, shown json)',
      'read_participations: request jsonb -> TABLE(participation text, "startsAt" timestamp with time zone, "appointmentId" uuid, "participationId" uuid)',
      'read_slots: request jsonb -> TABLE("from" bigint, "to" bigint, "isLimited" boolean, timeslots json, appointments json, occupied json)',
      'read_timeslots: request jsonb -> TABLE("timeslotId" uuid, "timeslotStartsAt" timestamp with time zone, "appointmentId" uuid, ' +
        '"appointmentStartsAt" timestamp with time zone, "rowCount" bigint, timeslot text, appointment text)',
    ]);
  });
});
