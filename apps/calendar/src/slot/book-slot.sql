-- Books a slot in one round trip: joins the open appointment of that slot, or makes one. The rules (which state takes a seat, how local times are read)
-- belong to the application and are passed in the request, so the provider's time zone must still be the one that the application has read.
--
-- It locks all bookable timeslots of the resource that overlap the slot, by id, then the appointments that overlap it, by id. Two slots that overlap have
-- at least one timeslot in common, that of either, so only one booking at a time can find the place free; nobody has to lock the resource. A change of a
-- timeslot excludes bookings in the same way. Whatever appears between the locks and the next statement, which sees it, makes the attempt stale.
-- create_appointment locks none of this: it is never refused, so it always counts as later.
--
-- Request: crmId, providerId, providerVersion, and where: either timeslotReference, startsAt, minutes (null: one raster) and productReference, with the
--   details of an appointment that is made: newReference, contentDigest in hex, description, contactReference, priceValue, priceCurrency (null if absent);
--   or appointmentReference. ignoreNotice. The participation: id, reference, customerReference (null for a hold without a customer), state, takesSeat,
--   reservationSeconds, message (may be null), event (a row of the outbox, its payload in base64).
-- Answer: outcome and reclaimed, the number of expired reservations it removed. The outcome is created, exists, provider_changed, timeslot_unknown,
--   appointment_unknown, customer_unknown, reference_taken, reference_expired, stale, or unavailable with a reason. For created also slot, the columns of
--   its appointment, seats, and name, email, mobile and reservedUntil of the participation; for exists the participationId.
-- If another transaction concurrently takes the reference of the participation, participation_reference_key is violated.
CREATE OR REPLACE FUNCTION book_slot(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  takes_seat boolean := request ->> 'takesSeat';
  event jsonb := request -> 'event';
  is_hold boolean := request ->> 'state' = 'RESERVED';
  present timestamptz;
  slot_start timestamptz := request ->> 'startsAt';
  slot_end timestamptz;
  earliest timestamptz;
  latest timestamptz;
  known record;
  opening timeslot%ROWTYPE;
  place appointment%ROWTYPE;
  other appointment%ROWTYPE;
  person customer%ROWTYPE;
  overlapping uuid[];
  locked uuid[];
  reclaimed integer := 0;
  is_taken boolean := false;
  is_full boolean := false;
  held_until timestamptz;
BEGIN
  PERFORM FROM provider WHERE crm_id = the_crm AND id = the_provider AND version = (request ->> 'providerVersion')::integer;
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'provider_changed'); END IF;

  IF request ? 'timeslotReference' THEN
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'timeslotReference';
    IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'timeslot_unknown'); END IF;
    slot_end := slot_start + make_interval(mins => coalesce((request ->> 'minutes')::integer, opening.raster::integer));
  END IF;

  SELECT participation.id, participation.reserved_until <= scheduling_now() AS is_over, customer.reference IS NOT DISTINCT FROM request ->> 'customerReference' AS same_customer,
      appointment.provider_id = the_provider AND CASE WHEN request ? 'appointmentReference' THEN appointment.reference = request ->> 'appointmentReference'
        ELSE appointment.resource_reference = opening.resource_reference AND appointment.product_reference = request ->> 'productReference'
         AND appointment.starts_at = slot_start AND appointment.ends_at = slot_end END AS same_place
    INTO known
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
    LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
   WHERE participation.crm_id = the_crm AND participation.reference = request ->> 'reference';
  IF FOUND THEN
    RETURN jsonb_build_object('participationId', known.id, 'outcome', CASE
      WHEN known.is_over THEN 'reference_expired' WHEN known.same_place AND known.same_customer THEN 'exists' ELSE 'reference_taken' END);
  END IF;

  IF request ? 'timeslotReference' THEN
    overlapping := ARRAY(SELECT id FROM overlapping_timeslots(the_crm, the_provider, opening.resource_reference, slot_start, slot_end));
    locked := ARRAY(SELECT id FROM timeslot WHERE crm_id = the_crm AND id = ANY (overlapping) ORDER BY id FOR NO KEY UPDATE);
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND id = opening.id;
    IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'timeslot_unknown'); END IF;
    IF slot_end <> slot_start + make_interval(mins => coalesce((request ->> 'minutes')::integer, opening.raster::integer))
       OR EXISTS (SELECT FROM overlapping_timeslots(the_crm, the_provider, opening.resource_reference, slot_start, slot_end) WHERE id <> ALL (locked)) THEN
      RETURN jsonb_build_object('outcome', 'stale');
    END IF;
    IF NOT is_step(opening, slot_start, slot_end) THEN RETURN jsonb_build_object('outcome', 'unavailable', 'reason', 'closed'); END IF;
  ELSE
    SELECT * INTO place FROM appointment
     WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'appointmentReference' FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'appointment_unknown'); END IF;
    slot_start := place.starts_at;
  END IF;

  -- The time is read behind the locks: an attempt may have waited for them.
  present := scheduling_now();
  SELECT bounds.earliest, bounds.latest INTO earliest, latest
    FROM booking_bounds(the_crm, the_provider, present, (request ->> 'ignoreNotice')::boolean) AS bounds;
  IF slot_start < earliest THEN RETURN jsonb_build_object('outcome', 'unavailable', 'reason', 'too_soon'); END IF;
  IF slot_start > latest THEN RETURN jsonb_build_object('outcome', 'unavailable', 'reason', 'too_late'); END IF;

  IF request ? 'timeslotReference' THEN
    overlapping := ARRAY(SELECT id FROM overlapping_appointments(the_crm, the_provider, opening.resource_reference, slot_start, slot_end));
    locked := ARRAY(SELECT id FROM appointment WHERE crm_id = the_crm AND id = ANY (overlapping) ORDER BY id FOR NO KEY UPDATE);
    reclaimed := (SELECT coalesce(sum(free_expired_seats(the_crm, id)), 0) FROM unnest(locked) AS id);
    FOR other IN SELECT * FROM overlapping_appointments(the_crm, the_provider, opening.resource_reference, slot_start, slot_end) ORDER BY id LOOP
      IF other.id <> ALL (locked) THEN RETURN jsonb_build_object('outcome', 'stale', 'reclaimed', reclaimed); END IF;
      is_taken := true;
      IF other.starts_at = slot_start AND other.ends_at = slot_end AND other.product_reference = request ->> 'productReference' AND other.accept_bookings THEN
        is_full := true;
        IF place.id IS NULL AND other.taken < other.capacity THEN place := other; END IF;
      END IF;
    END LOOP;
    IF is_taken AND place.id IS NULL THEN
      RETURN jsonb_build_object('outcome', 'unavailable', 'reason', CASE WHEN is_full THEN 'full' ELSE 'taken' END, 'reclaimed', reclaimed);
    END IF;
  ELSE
    reclaimed := free_expired_seats(the_crm, place.id);
    IF reclaimed > 0 THEN
      SELECT * INTO place FROM appointment WHERE crm_id = the_crm AND id = place.id;
      IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'appointment_unknown', 'reclaimed', reclaimed); END IF;
    END IF;
    IF place.state <> 'ACTIVE' OR NOT place.accept_bookings OR place.taken >= place.capacity THEN
      RETURN jsonb_build_object('outcome', 'unavailable', 'reclaimed', reclaimed, 'reason', CASE
        WHEN place.state <> 'ACTIVE' THEN 'closed' WHEN NOT place.accept_bookings THEN 'private' ELSE 'full' END);
    END IF;
  END IF;

  IF request ->> 'customerReference' IS NOT NULL THEN
    SELECT * INTO person FROM customer
     WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'customerReference'
     ORDER BY refreshed_at DESC LIMIT 1 FOR KEY SHARE;
    IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'customer_unknown', 'reclaimed', reclaimed); END IF;
  END IF;

  IF place.id IS NULL THEN
    INSERT INTO appointment (
      crm_id, provider_id, reference, resource_reference, product_reference, contact_reference, description, address, price_value, price_currency,
      starts_at, ends_at, capacity, taken, accept_bookings, content_digest, when_empty)
    VALUES (
      the_crm, the_provider, request ->> 'newReference', opening.resource_reference, request ->> 'productReference', request ->> 'contactReference',
      request ->> 'description', opening.address, (request ->> 'priceValue')::numeric, request ->> 'priceCurrency',
      slot_start, slot_end, opening.default_capacity, takes_seat::integer, opening.default_accept_bookings, decode(request ->> 'contentDigest', 'hex'), 'REMOVED')
    RETURNING * INTO place;
  ELSIF takes_seat THEN
    UPDATE appointment SET taken = taken + 1 WHERE crm_id = the_crm AND id = place.id RETURNING * INTO place;
  END IF;
  IF is_hold THEN held_until := present + make_interval(secs => (request ->> 'reservationSeconds')::integer); END IF;
  INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, state, exempt, reserved_until)
  VALUES (the_crm, (request ->> 'id')::uuid, place.id, person.id, request ->> 'reference', request ->> 'state', false, held_until);
  IF request ->> 'message' IS NOT NULL THEN
    INSERT INTO participation_message (crm_id, participation_id, version, text) VALUES (the_crm, (request ->> 'id')::uuid, 1, request ->> 'message');
  END IF;
  INSERT INTO outbox (subject, type, payload, request_id, traceparent)
  VALUES (event ->> 'subject', event ->> 'type', decode(event ->> 'payload', 'base64'), event ->> 'request_id', event ->> 'traceparent');

  RETURN jsonb_build_object(
    'outcome', 'created', 'reclaimed', reclaimed, 'slot', (SELECT content FROM slot_record(place, place.taken)),
    'name', person.user_name, 'email', person.email, 'mobile', person.mobile, 'reservedUntil', held_until);
END
$$;
