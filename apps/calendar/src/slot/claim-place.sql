-- How a booking finds and takes its place, whether it is new or moves there.
--
-- It locks all bookable timeslots of the resource that overlap the slot, by id, then the appointments that overlap it, by id. Two slots that overlap have
-- at least one timeslot in common, that of either, so only one booking at a time can find the place free; nobody has to lock the resource. A change of a
-- timeslot excludes bookings in the same way. Whatever appears between the locks and the next statement, which sees it, makes the attempt stale.
-- A booking of an appointment that a booking made locks one timeslot that offers it, so that nobody can hide that timeslot meanwhile.
-- create_appointment locks none of this: it is never refused, so it always counts as later.

-- The timeslots that offer an appointment which a booking made: bookable ones with a capacity, in which it lies.
CREATE OR REPLACE FUNCTION offering_timeslots(appointment appointment) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
  SELECT id
    FROM overlapping_timeslots(appointment.crm_id, appointment.provider_id, appointment.resource_reference, appointment.starts_at, appointment.ends_at)
   WHERE default_capacity >= 1 AND starts_at <= appointment.starts_at AND ends_at >= appointment.ends_at
$$;

-- Called by the other functions only.
--
-- Request: where, either startsAt, minutes (null: one raster) and productReference, with the timeslot `named`, as it was before the locks, or
--   appointmentReference; crmId, providerId, ignoreNotice, origin; and for a participation that leaves the appointment `source`, the participationId.
-- Answer: outcome, which is claimed, stale, appointment_unknown, timeslot_unknown, or unavailable with a reason; reclaimed, the number of expired
--   reservations it removed; and for claimed the place, an appointment to join, or else the period in which one is to be made, and the timeslot, as it is.
CREATE OR REPLACE FUNCTION claim_place(request jsonb, named timeslot, source uuid)
RETURNS TABLE (outcome text, reason text, reclaimed bigint, place appointment, slot_start timestamptz, slot_end timestamptz, opening timeslot) LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  the_resource text := named.resource_reference;
  minutes integer := coalesce((request ->> 'minutes')::integer, named.raster::integer);
  in_timeslot boolean := named.id IS NOT NULL;
  offering uuid;
  present timestamptz;
  bounds record;
  other appointment%ROWTYPE;
  overlapping uuid[];
  locked uuid[];
  leaves_empty boolean := false;
  is_taken boolean := false;
  is_full boolean := false;
  is_hidden boolean;
BEGIN
  reclaimed := 0;
  IF in_timeslot THEN
    slot_start := request ->> 'startsAt';
    slot_end := slot_start + make_interval(mins => minutes);
    overlapping := ARRAY(SELECT id FROM overlapping_timeslots(the_crm, the_provider, the_resource, slot_start, slot_end));
    locked := ARRAY(SELECT id FROM timeslot WHERE crm_id = the_crm AND id = ANY (overlapping) ORDER BY id FOR NO KEY UPDATE);
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND id = named.id;
    IF NOT FOUND THEN outcome := 'timeslot_unknown'; RETURN NEXT; RETURN; END IF;
    IF minutes <> coalesce((request ->> 'minutes')::integer, opening.raster::integer)
       OR EXISTS (SELECT FROM overlapping_timeslots(the_crm, the_provider, the_resource, slot_start, slot_end) WHERE id <> ALL (locked)) THEN
      outcome := 'stale'; RETURN NEXT; RETURN;
    END IF;
    IF NOT is_step(opening, slot_start, slot_end) THEN outcome := 'unavailable'; reason := 'closed'; RETURN NEXT; RETURN; END IF;
    -- It was hidden, or elsewhere, when the locks were taken.
    IF opening.id <> ALL (locked) THEN outcome := 'stale'; RETURN NEXT; RETURN; END IF;
    overlapping := ARRAY(SELECT id FROM overlapping_appointments(the_crm, the_provider, the_resource, slot_start, slot_end));
  ELSE
    SELECT * INTO place FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'appointmentReference';
    overlapping := ARRAY[place.id];
    IF place.when_empty IS NOT NULL THEN
      offering := (SELECT id FROM offering_timeslots(place) AS id LIMIT 1);
      PERFORM FROM timeslot WHERE crm_id = the_crm AND id = offering FOR KEY SHARE;
    END IF;
  END IF;
  locked := ARRAY(SELECT id FROM appointment WHERE crm_id = the_crm AND id = ANY (overlapping || source) ORDER BY id FOR NO KEY UPDATE);
  reclaimed := (SELECT coalesce(sum(free_expired_seats(the_crm, id, request -> 'origin')), 0) FROM unnest(locked) AS id);
  IF NOT in_timeslot THEN
    SELECT * INTO place FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND id = ANY (overlapping);
    IF NOT FOUND THEN outcome := 'appointment_unknown'; RETURN NEXT; RETURN; END IF;
    slot_start := place.starts_at;
    slot_end := place.ends_at;
  END IF;

  -- The time is read behind the locks: an attempt may have waited for them.
  SELECT * INTO bounds FROM booking_bounds(the_crm, the_provider, scheduling_now(the_crm), (request ->> 'ignoreNotice')::boolean);
  outcome := 'unavailable';
  reason := CASE WHEN slot_start < bounds.earliest THEN 'too_soon' WHEN slot_start > bounds.latest THEN 'too_late' END;
  IF reason IS NOT NULL THEN RETURN NEXT; RETURN; END IF;

  IF in_timeslot THEN
    leaves_empty := ends_without(the_crm, source, (request ->> 'participationId')::uuid);
    FOR other IN SELECT * FROM overlapping_appointments(the_crm, the_provider, the_resource, slot_start, slot_end) ORDER BY id LOOP
      CONTINUE WHEN leaves_empty AND other.id = source;
      IF other.id <> ALL (locked) THEN outcome := 'stale'; RETURN NEXT; RETURN; END IF;
      is_taken := true;
      IF other.starts_at = slot_start AND other.ends_at = slot_end AND other.product_reference = request ->> 'productReference' AND other.accept_bookings THEN
        is_full := true;
        IF place.id IS NULL AND other.taken < other.capacity THEN place := other; END IF;
      END IF;
    END LOOP;
    reason := CASE WHEN place.id IS NULL AND is_taken THEN CASE WHEN is_full THEN 'full' ELSE 'taken' END END;
  ELSE
    is_hidden := place.when_empty IS NOT NULL AND NOT EXISTS (SELECT FROM offering_timeslots(place));
    reason := CASE
      WHEN place.state <> 'ACTIVE' OR is_hidden THEN 'closed'
      WHEN NOT place.accept_bookings THEN 'private'
      WHEN place.taken >= place.capacity THEN 'full' END;
    IF reason IS NULL AND place.when_empty IS NOT NULL AND NOT EXISTS (SELECT FROM offering_timeslots(place) AS id WHERE id = offering) THEN
      outcome := 'stale'; RETURN NEXT; RETURN;
    END IF;
  END IF;
  IF reason IS NULL THEN outcome := 'claimed'; END IF;
  RETURN NEXT;
END
$$;

-- Whether an appointment, which the caller has locked, ends when the participation leaves it.
CREATE OR REPLACE FUNCTION ends_without(the_crm text, the_appointment uuid, the_participation uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM appointment WHERE crm_id = the_crm AND id = the_appointment AND when_empty IS NOT NULL)
     AND NOT EXISTS (
       SELECT FROM participation
        WHERE crm_id = the_crm AND appointment_id = the_appointment AND id <> the_participation AND state IN ('RESERVED', 'REQUESTED', 'BOOKED'))
$$;

-- Takes `seats` in the place that was claimed: in its appointment, or in one that is made there. The event of the participation is counted: it has the event_count
-- of the appointment that is returned.
--
-- Request: crmId, providerId, origin; for an appointment that is made newReference, contentDigest in hex, productReference, description, contactReference,
--   priceValue, priceCurrency.
CREATE OR REPLACE FUNCTION take_place(request jsonb, opening timeslot, place appointment, slot_start timestamptz, slot_end timestamptz, seats integer)
RETURNS appointment LANGUAGE plpgsql AS $$
BEGIN
  IF place.id IS NULL THEN
    INSERT INTO appointment (
      crm_id, provider_id, reference, resource_reference, product_reference, contact_reference, description, address, price_value, price_currency,
      starts_at, ends_at, capacity, taken, accept_bookings, content_digest, when_empty, event_count)
    VALUES (
      request ->> 'crmId', (request ->> 'providerId')::uuid, request ->> 'newReference', opening.resource_reference, request ->> 'productReference',
      request ->> 'contactReference', request ->> 'description', opening.address, (request ->> 'priceValue')::numeric, request ->> 'priceCurrency',
      slot_start, slot_end, opening.default_capacity, seats, opening.default_accept_bookings, decode(request ->> 'contentDigest', 'hex'), 'REMOVED', 2)
    RETURNING * INTO place;
    PERFORM append_appointment_changed(place, 'CREATED', request -> 'origin');
  ELSE
    UPDATE appointment SET taken = taken + seats, event_count = event_count + 1 WHERE crm_id = place.crm_id AND id = place.id RETURNING * INTO place;
  END IF;
  RETURN place;
END
$$;
