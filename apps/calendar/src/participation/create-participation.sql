-- Books in one round trip. It locks the appointment first, so only the holder of that lock allocates its seats; each statement after the lock
-- sees what was committed before it was granted (READ COMMITTED takes a snapshot per statement). The customer's row is locked too, so that an
-- erasure, which locks it FOR UPDATE, comes entirely before or after. The rules (which state takes a seat) belong to the application and are
-- passed in the request.
--
-- Request: crmId, providerReference, appointmentReference, customerReference, id, reference, state, takesSeat, needsActive, exempt,
--   reservationSeconds, message (may be null), origin (of the event, with its subject; see append-events.sql).
-- Answer: outcome, which is created, provider_unknown, appointment_unknown, customer_unknown, appointment_cancelled, full or exists; reclaimed,
--   the number of expired reservations it removed; for full also capacity; for created and exists also appointmentId and customerId; for created
--   also name, email, mobile and reservedUntil.
-- If another transaction concurrently takes the reference for another appointment, participation_reference_key is violated.
CREATE OR REPLACE FUNCTION create_participation(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  new_id uuid := request ->> 'id';
  new_reference text := request ->> 'reference';
  new_state text := request ->> 'state';
  takes_seat boolean := request ->> 'takesSeat';
  is_exempt boolean := request ->> 'exempt';
  origin jsonb := request -> 'origin';
  the_provider uuid;
  place appointment%ROWTYPE;
  person customer%ROWTYPE;
  made participation%ROWTYPE;
  held_until timestamptz;
  reclaimed integer;
  answer jsonb;
BEGIN
  SELECT id INTO the_provider FROM provider WHERE crm_id = the_crm AND reference = request ->> 'providerReference';
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'provider_unknown'); END IF;

  SELECT * INTO place FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'appointmentReference' FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'appointment_unknown'); END IF;
  reclaimed := free_expired_seats(the_crm, place.id, origin);
  answer := jsonb_build_object('reclaimed', reclaimed);
  IF reclaimed > 0 THEN
    SELECT * INTO place FROM appointment WHERE crm_id = the_crm AND id = place.id;
    IF NOT FOUND THEN RETURN answer || jsonb_build_object('outcome', 'appointment_unknown'); END IF;
  END IF;

  SELECT * INTO person FROM customer
   WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'customerReference' AND reference_known
   ORDER BY refreshed_at DESC LIMIT 1 FOR KEY SHARE;
  IF NOT FOUND THEN RETURN answer || jsonb_build_object('outcome', 'customer_unknown'); END IF;

  PERFORM FROM participation WHERE crm_id = the_crm AND reference = new_reference;
  IF FOUND THEN RETURN answer || jsonb_build_object('outcome', 'exists', 'appointmentId', place.id, 'customerId', person.id); END IF;
  IF (request ->> 'needsActive')::boolean AND place.state <> 'ACTIVE' THEN RETURN answer || jsonb_build_object('outcome', 'appointment_cancelled'); END IF;
  IF takes_seat AND NOT is_exempt AND place.taken >= place.capacity THEN RETURN answer || jsonb_build_object('outcome', 'full', 'capacity', place.capacity); END IF;

  UPDATE appointment SET taken = taken + takes_seat::integer, event_count = event_count + 1 WHERE crm_id = the_crm AND id = place.id RETURNING * INTO place;
  IF new_state = 'RESERVED' THEN
    held_until := scheduling_now(the_crm) + make_interval(secs => (request ->> 'reservationSeconds')::integer);
  END IF;
  INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, state, exempt, reserved_until, mail_event_id, invited)
  VALUES (the_crm, new_id, place.id, person.id, new_reference, new_state, is_exempt, held_until, new_mail_event(origin), invites(origin, new_state))
  RETURNING * INTO made;
  IF request ->> 'message' IS NOT NULL THEN
    INSERT INTO participation_message (crm_id, participation_id, version, text) VALUES (the_crm, new_id, 1, request ->> 'message');
  END IF;
  PERFORM append_participation_changed(made, the_provider, 'CREATED', NULL, origin, NULL, place.event_count);

  RETURN answer || jsonb_build_object(
    'outcome', 'created', 'appointmentId', place.id, 'customerId', person.id,
    'name', person.user_name, 'email', person.email, 'mobile', person.mobile, 'reservedUntil', held_until);
END
$$;
