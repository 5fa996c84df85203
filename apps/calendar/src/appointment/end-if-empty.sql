-- An appointment that was made by a booking ends with its last participant: it is cancelled, or removed if it never had anybody but reservations that
-- expired. Its slot is free again.
--
-- Called by the other functions only, with the appointment locked and its expired reservations removed.
CREATE OR REPLACE FUNCTION end_if_empty(the_crm text, the_appointment uuid, origin jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  target appointment%ROWTYPE;
BEGIN
  SELECT * INTO target FROM appointment
   WHERE crm_id = the_crm AND id = the_appointment AND state = 'ACTIVE' AND when_empty IS NOT NULL AND taken = 0;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM FROM participation WHERE crm_id = the_crm AND appointment_id = the_appointment AND is_active(state);
  IF FOUND THEN RETURN; END IF;

  IF target.when_empty = 'REMOVED' THEN
    DELETE FROM appointment
     WHERE crm_id = the_crm AND id = the_appointment
       AND NOT EXISTS (SELECT FROM participation WHERE participation.crm_id = the_crm AND appointment_id = the_appointment);
    IF FOUND THEN
      PERFORM append_appointment_changed(target, 'DELETED', origin);
      RETURN;
    END IF;
  END IF;
  UPDATE appointment SET state = 'CANCELLED', event_count = event_count + 1 WHERE crm_id = the_crm AND id = the_appointment;
  PERFORM append_appointment_changed(target, 'CANCELLED', origin);
END
$$;

-- Removes participations, whose appointments the caller has locked, and frees their seats. Nobody gets a mail: what the last mail says has an event of its own.
--
-- Request: crmId, participationIds, origin (see append-events.sql).
CREATE OR REPLACE FUNCTION leave_appointments(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  ids uuid[] := ARRAY(SELECT jsonb_array_elements_text(request -> 'participationIds'))::uuid[];
  leaving participation%ROWTYPE;
  target appointment%ROWTYPE;
  left_ids uuid[] := '{}';
BEGIN
  FOR leaving IN DELETE FROM participation WHERE crm_id = the_crm AND id = ANY (ids) RETURNING * LOOP
    UPDATE appointment
       SET taken = taken - takes_seat(leaving.state)::integer, event_count = event_count + 1, when_empty = CASE WHEN when_empty IS NOT NULL THEN 'CANCELLED' END
     WHERE crm_id = the_crm AND id = leaving.appointment_id
    RETURNING * INTO target;
    PERFORM append_participation_removed(leaving, target.provider_id, request -> 'origin', target.event_count);
    left_ids := left_ids || target.id;
  END LOOP;
  PERFORM end_if_empty(the_crm, id, request -> 'origin') FROM (SELECT DISTINCT unnest(left_ids) AS id) AS emptied;
  RETURN '{}';
END
$$;
