-- `appointment.taken` counts the participations that are BOOKED or RESERVED, expired reservations among them. Expired ones are removed and their
-- seats freed before any seat is allocated.

DROP FUNCTION IF EXISTS free_expired_seats(text, uuid);

-- Called by the other functions only, with the appointment locked. Returns the number of seats that became free; then the appointment may have ended.
CREATE OR REPLACE FUNCTION free_expired_seats(the_crm text, the_appointment uuid, origin jsonb) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  expired participation%ROWTYPE;
  the_provider uuid;
  freed integer := 0;
BEGIN
  -- They would have expired without the request that finds them.
  origin := origin - 'actor';
  FOR expired IN
    DELETE FROM participation
     WHERE crm_id = the_crm AND appointment_id = the_appointment AND state = 'RESERVED' AND reserved_until <= scheduling_now()
    RETURNING *
  LOOP
    freed := freed + 1;
    IF freed = 1 THEN SELECT provider_id INTO the_provider FROM appointment WHERE crm_id = the_crm AND id = the_appointment; END IF;
    PERFORM append_participation_removed(expired, the_provider, origin);
  END LOOP;
  IF freed > 0 THEN
    UPDATE appointment SET taken = taken - freed WHERE crm_id = the_crm AND id = the_appointment;
    PERFORM end_if_empty(the_crm, the_appointment, origin);
  END IF;
  RETURN freed;
END
$$;

-- { crmId, appointmentId, origin } -> { reclaimed }. The caller has locked the appointment.
CREATE OR REPLACE FUNCTION reclaim_reservations(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  RETURN jsonb_build_object('reclaimed', free_expired_seats(request ->> 'crmId', (request ->> 'appointmentId')::uuid, request -> 'origin'));
END
$$;

-- { limit, origin } -> { swept }. An appointment locked by another transaction is left for the next round, so sweepers never wait for each other.
CREATE OR REPLACE FUNCTION sweep_reservations(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  place record;
  swept integer := 0;
BEGIN
  FOR place IN
    SELECT crm_id, id FROM appointment
     WHERE (crm_id, id) IN (
       SELECT crm_id, appointment_id FROM participation
        WHERE state = 'RESERVED' AND reserved_until <= (SELECT scheduling_now())
        ORDER BY reserved_until LIMIT (request ->> 'limit')::integer)
       FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    swept := swept + free_expired_seats(place.crm_id, place.id, request -> 'origin');
  END LOOP;
  RETURN jsonb_build_object('swept', swept);
END
$$;
