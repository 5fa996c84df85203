-- Books a slot in one round trip: joins the open appointment of that slot, or makes one; see claim-place.sql. The rules (which state takes a seat, how local
-- times are read) belong to the application and are passed in the request, so the provider's time zone must still be the one that the application has read.
--
-- Request: crmId, providerId, providerVersion, and where: either timeslotReference, startsAt, minutes (null: one raster) and productReference, with the
--   details of an appointment that is made: newReference, contentDigest in hex, description, contactReference, priceValue, priceCurrency (null if absent);
--   or appointmentReference. ignoreNotice. The participation: id, reference, customerReference (null for a hold without a customer), state, takesSeat,
--   reservationSeconds, message (may be null), origin (of the event, with its subject; see append-events.sql); and if the customer service has prepared the
--   customer, prepared (see add-prepared-customer.sql).
-- Answer: outcome and reclaimed, the number of expired reservations it removed. The outcome is created, exists, provider_changed, timeslot_unknown,
--   appointment_unknown, customer_unknown, reference_taken, reference_expired, stale, or unavailable with a reason. For created also slot, the columns of
--   its appointment, and name, email, mobile and reservedUntil of the participation; for exists the participationId, and for customer_unknown if the
--   participation exists.
-- If another transaction concurrently takes the reference of the participation, participation_reference_key is violated.
CREATE OR REPLACE FUNCTION book_slot(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  origin jsonb := request -> 'origin';
  opening timeslot%ROWTYPE;
  known record;
  claim record;
  place appointment%ROWTYPE;
  person customer%ROWTYPE;
  made participation%ROWTYPE;
  held_until timestamptz;
  answer jsonb;
BEGIN
  PERFORM FROM provider WHERE crm_id = the_crm AND id = the_provider AND version = (request ->> 'providerVersion')::integer;
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'provider_changed'); END IF;

  IF request ? 'timeslotReference' THEN
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'timeslotReference';
    IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'timeslot_unknown'); END IF;
  END IF;
  SELECT participation.id, participation.reserved_until <= scheduling_now(the_crm) AS is_over, is_place(appointment, opening, request) AS same_place,
      participation.customer_id
    INTO known
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
   WHERE participation.crm_id = the_crm AND participation.reference = request ->> 'reference';
  IF FOUND THEN
    SELECT * INTO person FROM customer
     WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'customerReference' AND reference_known
     ORDER BY refreshed_at DESC LIMIT 1;
    RETURN jsonb_build_object('participationId', known.id, 'outcome', CASE
      WHEN known.is_over THEN 'reference_expired'
      WHEN NOT known.same_place THEN 'reference_taken'
      WHEN person.id IS NULL AND request ->> 'customerReference' IS NOT NULL THEN 'customer_unknown'
      WHEN known.customer_id IS NOT DISTINCT FROM person.id THEN 'exists'
      ELSE 'reference_taken' END);
  END IF;

  SELECT * INTO claim FROM claim_place(request, opening, NULL);
  answer := jsonb_build_object('reclaimed', claim.reclaimed);
  -- The place may be that of this very booking, made by a request that was faster to lock it.
  IF claim.outcome = 'unavailable' AND EXISTS (SELECT FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference') THEN
    RETURN answer || jsonb_build_object('outcome', 'stale');
  END IF;
  IF claim.outcome <> 'claimed' THEN RETURN answer || jsonb_build_object('outcome', claim.outcome, 'reason', claim.reason); END IF;
  IF request ->> 'customerReference' IS NOT NULL THEN
    SELECT * INTO person FROM customer
     WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'customerReference' AND reference_known
     ORDER BY refreshed_at DESC LIMIT 1 FOR KEY SHARE;
    IF NOT FOUND AND request ? 'prepared' THEN
      person := add_prepared_customer(the_crm, the_provider, request ->> 'customerReference', request -> 'prepared');
    END IF;
    IF person.id IS NULL THEN RETURN answer || jsonb_build_object('outcome', 'customer_unknown'); END IF;
  END IF;

  place := take_place(request, claim.opening, claim.place, claim.slot_start, claim.slot_end, (request ->> 'takesSeat')::boolean::integer);
  IF request ->> 'state' = 'RESERVED' THEN held_until := scheduling_now(the_crm) + make_interval(secs => (request ->> 'reservationSeconds')::integer); END IF;
  INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, state, exempt, reserved_until, mail_event_id, invited)
  VALUES (the_crm, (request ->> 'id')::uuid, place.id, person.id, request ->> 'reference', request ->> 'state', false, held_until, new_mail_event(origin), invites(origin, request ->> 'state'))
  RETURNING * INTO made;
  IF request ->> 'message' IS NOT NULL THEN
    INSERT INTO participation_message (crm_id, participation_id, version, text) VALUES (the_crm, (request ->> 'id')::uuid, 1, request ->> 'message');
  END IF;
  PERFORM append_participation_changed(made, the_provider, 'CREATED', NULL, origin, NULL, place.event_count);

  RETURN answer || jsonb_build_object(
    'outcome', 'created', 'slot', (SELECT content FROM slot_record(place, place.taken)),
    'name', person.user_name, 'email', person.email, 'mobile', person.mobile, 'reservedUntil', held_until);
END
$$;
