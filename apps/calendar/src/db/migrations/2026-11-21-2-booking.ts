import { type Kysely, sql } from 'kysely';

/**
 * The writes that take seats, one round trip each. All of them lock the appointment first, so whoever holds that lock alone decides about its
 * seats; each statement behind the lock sees what was committed before it was granted (READ COMMITTED takes a snapshot per statement). The rules
 * (which move is allowed, which state takes a seat) are the application's and come in as parameters.
 *
 * `appointment.taken` is the number of participations that are BOOKED or RESERVED, whether or not a reservation's time is over; a reservation
 * that is over is removed, and its seat with it, before any seat is given away.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createReclaim(db);
  await createSweep(db);
  await createCreateParticipation(db);
  await createMoveParticipation(db);
}

/** The caller holds the lock on the appointment. Returns the number of seats that became free. */
async function createReclaim(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE FUNCTION reclaim_reservations(the_crm text, the_appointment uuid) RETURNS integer LANGUAGE plpgsql AS $$
    DECLARE
      reclaimed integer;
    BEGIN
      DELETE FROM participation
       WHERE crm_id = the_crm AND appointment_id = the_appointment AND state = 'RESERVED' AND reserved_until <= scheduling_now();
      GET DIAGNOSTICS reclaimed = ROW_COUNT;
      IF reclaimed > 0 THEN
        UPDATE appointment SET taken = taken - reclaimed WHERE crm_id = the_crm AND id = the_appointment;
      END IF;
      RETURN reclaimed;
    END
    $$`.execute(db);
}

/** An appointment that somebody else has locked is left for the next round, so many sweepers never wait for each other. */
async function createSweep(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE FUNCTION sweep_reservations(batch_size integer) RETURNS integer LANGUAGE plpgsql AS $$
    DECLARE
      place record;
      swept integer := 0;
    BEGIN
      FOR place IN
        SELECT crm_id, id FROM appointment
         WHERE (crm_id, id) IN (
           SELECT crm_id, appointment_id FROM participation
            WHERE state = 'RESERVED' AND reserved_until <= (SELECT scheduling_now())
            ORDER BY reserved_until LIMIT batch_size)
           FOR NO KEY UPDATE SKIP LOCKED
      LOOP
        swept := swept + reclaim_reservations(place.crm_id, place.id);
      END LOOP;
      RETURN swept;
    END
    $$`.execute(db);
}

/**
 * The customer's row is locked too, so that an erasure, which locks it FOR UPDATE, comes entirely before or after. An existing reference
 * is `exists` when it is committed; one that another transaction makes at this moment for another appointment violates the unique key.
 */
async function createCreateParticipation(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE FUNCTION create_participation(
      the_crm text, the_provider_reference text, the_appointment_reference text, the_customer_reference text,
      new_id uuid, new_reference text, new_state text, takes_seat boolean, needs_active boolean, is_exempt boolean,
      reservation_seconds integer, message text,
      event_subject text, event_type text, event_payload bytea, event_request_id text, event_traceparent text,
      OUT outcome text, OUT appointment_id uuid, OUT customer_id uuid,
      OUT name text, OUT email text, OUT mobile text, OUT reserved_until timestamptz
    ) LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
      the_provider uuid;
      place appointment%ROWTYPE;
      person customer%ROWTYPE;
    BEGIN
      SELECT id INTO the_provider FROM provider WHERE crm_id = the_crm AND reference = the_provider_reference;
      IF NOT FOUND THEN outcome := 'provider_unknown'; RETURN; END IF;

      SELECT * INTO place FROM appointment
       WHERE crm_id = the_crm AND provider_id = the_provider AND reference = the_appointment_reference FOR NO KEY UPDATE;
      IF NOT FOUND THEN outcome := 'appointment_unknown'; RETURN; END IF;
      place.taken := place.taken - reclaim_reservations(the_crm, place.id);

      SELECT * INTO person FROM customer
       WHERE crm_id = the_crm AND provider_id = the_provider AND reference = the_customer_reference
       ORDER BY refreshed_at DESC LIMIT 1 FOR KEY SHARE;
      IF NOT FOUND THEN outcome := 'customer_unknown'; RETURN; END IF;
      appointment_id := place.id;
      customer_id := person.id;

      PERFORM FROM participation WHERE crm_id = the_crm AND reference = new_reference;
      IF FOUND THEN outcome := 'exists'; RETURN; END IF;
      IF needs_active AND place.state <> 'ACTIVE' THEN outcome := 'appointment_cancelled'; RETURN; END IF;
      IF takes_seat AND NOT is_exempt AND place.taken >= place.capacity THEN outcome := 'full'; RETURN; END IF;

      IF takes_seat THEN
        UPDATE appointment SET taken = taken + 1 WHERE crm_id = the_crm AND id = place.id;
      END IF;
      IF new_state = 'RESERVED' THEN
        reserved_until := scheduling_now() + make_interval(secs => reservation_seconds);
      END IF;
      INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, state, exempt, reserved_until)
      VALUES (the_crm, new_id, place.id, person.id, new_reference, new_state, is_exempt, create_participation.reserved_until);
      IF message IS NOT NULL THEN
        INSERT INTO participation_message (crm_id, participation_id, version, text) VALUES (the_crm, new_id, 1, message);
      END IF;
      INSERT INTO outbox (subject, type, payload, request_id, traceparent)
      VALUES (event_subject, event_type, event_payload, event_request_id, event_traceparent);

      outcome := 'created';
      name := person.user_name;
      email := person.email;
      mobile := person.mobile;
    END
    $$`.execute(db);
}

/** `seats` is what the move adds to the taken seats: -1, 0 or 1. A version other than the expected one is `stale`: the caller decides anew. */
async function createMoveParticipation(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE FUNCTION move_participation(
      the_crm text, the_participation uuid, expected_version integer,
      new_state text, seats integer, needs_active boolean, becomes_exempt boolean, message text,
      event_subject text, event_type text, event_payload bytea, event_request_id text, event_traceparent text
    ) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      place appointment%ROWTYPE;
      present participation%ROWTYPE;
    BEGIN
      SELECT * INTO place FROM appointment
       WHERE crm_id = the_crm
         AND id = (SELECT appointment_id FROM participation WHERE crm_id = the_crm AND id = the_participation)
         FOR NO KEY UPDATE;
      IF NOT FOUND THEN RETURN 'gone'; END IF;
      place.taken := place.taken - reclaim_reservations(the_crm, place.id);

      SELECT * INTO present FROM participation WHERE crm_id = the_crm AND id = the_participation FOR NO KEY UPDATE;
      IF NOT FOUND THEN RETURN 'gone'; END IF;
      IF present.version <> expected_version THEN RETURN 'stale'; END IF;
      IF needs_active AND place.state <> 'ACTIVE' THEN RETURN 'appointment_cancelled'; END IF;
      IF seats > 0 AND NOT (present.exempt OR becomes_exempt) AND place.taken >= place.capacity THEN RETURN 'full'; END IF;

      IF seats <> 0 THEN
        UPDATE appointment SET taken = taken + seats WHERE crm_id = the_crm AND id = place.id;
      END IF;
      UPDATE participation
         SET state = new_state, version = version + 1, reserved_until = NULL, exempt = exempt OR becomes_exempt
       WHERE crm_id = the_crm AND id = the_participation;
      IF message IS NOT NULL THEN
        INSERT INTO participation_message (crm_id, participation_id, version, text)
        VALUES (the_crm, the_participation, expected_version + 1, message);
      END IF;
      INSERT INTO outbox (subject, type, payload, request_id, traceparent)
      VALUES (event_subject, event_type, event_payload, event_request_id, event_traceparent);
      RETURN 'moved';
    END
    $$`.execute(db);
}
