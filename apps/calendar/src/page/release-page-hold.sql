-- Ends a hold of a booking page now, as if its time were over; what is no hold stays as it is.
--
-- Request: crmId, reference, origin (see append-events.sql).
-- Answer: reclaimed, the number of reservations that were removed.
CREATE OR REPLACE FUNCTION release_page_hold(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_appointment uuid := (SELECT appointment_id FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference' AND state = 'RESERVED');
BEGIN
  PERFORM FROM appointment WHERE crm_id = the_crm AND id = the_appointment FOR NO KEY UPDATE;
  UPDATE participation SET reserved_until = least(reserved_until, scheduling_now(the_crm))
   WHERE crm_id = the_crm AND appointment_id = the_appointment AND reference = request ->> 'reference' AND state = 'RESERVED';
  RETURN jsonb_build_object('reclaimed', free_expired_seats(the_crm, the_appointment, request -> 'origin'));
END
$$;
