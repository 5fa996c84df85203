-- `appointment.taken` counts the participations that are BOOKED or RESERVED, expired reservations among them. Expired ones are removed and their
-- seats freed before any seat is allocated.
--
-- Called by the other functions only, with the appointment locked. Returns the number of seats that became free; then the appointment may have ended.
CREATE OR REPLACE FUNCTION free_expired_seats(the_crm text, the_appointment uuid, origin jsonb) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  expired participation%ROWTYPE;
  target appointment%ROWTYPE;
  freed integer := 0;
BEGIN
  -- They would have expired without the request that finds them.
  origin := origin - 'actor';
  FOR expired IN
    DELETE FROM participation
     WHERE crm_id = the_crm AND appointment_id = the_appointment AND state = 'RESERVED' AND reserved_until <= (SELECT scheduling_now(the_crm))
    RETURNING *
  LOOP
    freed := freed + 1;
    IF freed = 1 THEN SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND id = the_appointment; END IF;
    PERFORM append_participation_removed(expired, target.provider_id, origin, target.event_count + freed);
  END LOOP;
  IF freed > 0 THEN
    UPDATE appointment SET taken = taken - freed, event_count = event_count + freed WHERE crm_id = the_crm AND id = the_appointment;
    PERFORM end_if_empty(the_crm, the_appointment, origin);
  END IF;
  RETURN freed;
END
$$;

-- { crmId, references, origin } -> { reclaimed }: removes the expired reservations of the appointments in which one has one of these references, so that these are
-- free again before the sweeper runs.
CREATE OR REPLACE FUNCTION reclaim_reservations(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
  the_references text[] := ARRAY(SELECT jsonb_array_elements_text(request -> 'references'));
  locked uuid[] := ARRAY(
    SELECT id FROM appointment
     WHERE crm_id = the_crm
       AND id IN (SELECT appointment_id FROM participation WHERE crm_id = the_crm AND reference = ANY (the_references) AND reserved_until <= present)
     ORDER BY id FOR NO KEY UPDATE);
BEGIN
  RETURN jsonb_build_object('reclaimed', (SELECT coalesce(sum(free_expired_seats(the_crm, id, request -> 'origin')), 0) FROM unnest(locked) AS id));
END
$$;

-- Called by the next function only. The reservations that expire next, at most `max_rows` by the service's clock and as many of each sandbox by its own.
CREATE OR REPLACE FUNCTION next_expirations(max_rows integer)
RETURNS TABLE (crm_id text, appointment_id uuid, remaining interval) LANGUAGE sql STABLE AS $$
  (SELECT crm_id, appointment_id, reserved_until - scheduling_now()
     FROM participation
    WHERE state = 'RESERVED' AND reserved_until IS NOT NULL AND NOT EXISTS (SELECT FROM sandbox_clock AS clock WHERE clock.crm_id = participation.crm_id)
    ORDER BY reserved_until LIMIT max_rows)
  UNION ALL
  SELECT clock.crm_id, due.appointment_id, due.reserved_until - scheduling_now(clock.crm_id)
    FROM sandbox_clock AS clock
   CROSS JOIN LATERAL (
     SELECT appointment_id, reserved_until FROM participation
      WHERE participation.crm_id = clock.crm_id AND state = 'RESERVED' AND reserved_until IS NOT NULL
      ORDER BY reserved_until LIMIT max_rows) AS due
$$;

-- { limit, origin } -> { swept, nextInMs }: how many were removed, and how long until the next one expires by the clock of its CRM; null: there is none,
-- negative: one could not be removed yet. An appointment locked by another transaction is left for the next round, so sweepers never wait for each other.
CREATE OR REPLACE FUNCTION sweep_reservations(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  target record;
  swept integer := 0;
BEGIN
  FOR target IN
    SELECT crm_id, id FROM appointment
     WHERE (crm_id, id) IN (
       SELECT expiration.crm_id, expiration.appointment_id FROM next_expirations((request ->> 'limit')::integer) AS expiration
        WHERE remaining <= interval '0')
       FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    swept := swept + free_expired_seats(target.crm_id, target.id, request -> 'origin');
  END LOOP;
  RETURN jsonb_build_object('swept', swept, 'nextInMs', (SELECT extract(epoch FROM min(remaining)) * 1000 FROM next_expirations(1)));
END
$$;
