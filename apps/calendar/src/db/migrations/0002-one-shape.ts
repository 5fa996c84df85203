import { type Kysely, sql } from 'kysely';

/** Functions that no longer exist, or have other arguments, names of them, or another result. Before the present ones. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    DROP FUNCTION IF EXISTS participation_record(participation, customer);
    DROP FUNCTION IF EXISTS participation_json(text, uuid, text, text, text, text, text, text, text, text, timestamptz);
    DROP FUNCTION IF EXISTS appointment_json(appointment, timestamptz, timestamptz);
    DROP FUNCTION IF EXISTS slot_record(appointment, bigint);
    DROP FUNCTION IF EXISTS move_participation(jsonb);
    DROP FUNCTION IF EXISTS find_participation(jsonb);
    DROP FUNCTION IF EXISTS end_left_appointments(jsonb);
    DROP FUNCTION IF EXISTS read_participation_notice(jsonb);
    DROP FUNCTION IF EXISTS append_appointment_changed(appointment, text, jsonb);
    DROP FUNCTION IF EXISTS take_place(jsonb, timeslot, appointment, timestamptz, timestamptz, integer);
    DROP FUNCTION IF EXISTS claim_place(jsonb, timeslot, uuid);
    DROP FUNCTION IF EXISTS participation_changed_data(participation, uuid, text, text, text, text, uuid, integer, uuid, integer)`.execute(
    db,
  );
}
