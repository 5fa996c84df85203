-- What a booking is: participation, its text (participation-json.sql), and slot (slot-details.sql), in the timeslot in which it was requested, if any. Null if
-- there is no such participation, or if it is an expired reservation.
CREATE OR REPLACE FUNCTION booking_content(the_crm text, the_participation uuid, timeslot_reference text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  present timestamptz := scheduling_now(the_crm);
BEGIN
  RETURN (
    SELECT jsonb_build_object('participation', participation_text(the_crm, the_participation), 'slot', slot_of(appointment, seats.taken, timeslot_reference))
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
     CROSS JOIN occupancy(appointment, present) AS seats
     WHERE participation.crm_id = the_crm AND participation.id = the_participation
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present));
END
$$;

-- The answer (see answers.sql) for a booking that nothing has changed. It is not locked: if it is gone by now, the caller decides again.
CREATE OR REPLACE FUNCTION present_booking_answer(the_crm text, the_participation uuid, timeslot_reference text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(
    jsonb_build_object('id', the_participation, 'created', false) || booking_content(the_crm, the_participation, timeslot_reference), retry_answer('stale'));
END
$$;

-- { crmId, participationId, timeslotReference (may be null) } -> booking_content
CREATE OR REPLACE FUNCTION read_booking(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN booking_content(request ->> 'crmId', (request ->> 'participationId')::uuid, request ->> 'timeslotReference');
END
$$;
