-- How a booking finds and takes its place, whether it is new or moves there (interface 10.2 and 10.3).
--
-- It locks all bookable timeslots of the resource that overlap the slot or are within buffers of it, by id, then such appointments, by id. Of two slots that overlap, or
-- are too near to each other, each locks the timeslot of the other, so only one booking at a time can find the place free; nobody has to lock the resource. A change of a
-- timeslot excludes bookings in the same way. Whatever appears between the locks and the next statement, which sees it, makes the attempt stale.
-- Blocks are looked for behind the locks: whoever creates one waits, once it is stored, for those who have these locks (conflicts-with-block.sql).
-- A booking of an appointment that a booking made locks one timeslot that offers it, so that nobody can hide that timeslot meanwhile.
-- create_appointment locks none of this: it is never refused, so it always counts as later.

-- Why a slot cannot be booked (interface 10.2), as an answer (see answers.sql).
CREATE OR REPLACE FUNCTION unavailable_answer(reason text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT error_answer('slot.unavailable', jsonb_build_object('reason', reason, 'text', CASE reason
    WHEN 'taken' THEN 'The place is taken by another appointment.'
    WHEN 'full' THEN 'All seats of the appointment are taken.'
    WHEN 'private' THEN 'The appointment is not publicly bookable.'
    WHEN 'closed' THEN 'The slot is not offered any more.'
    WHEN 'blocked' THEN 'The resource is blocked at that time.'
    WHEN 'too_soon' THEN 'The slot begins in the past, or sooner than the minimum notice of the provider allows.'
    WHEN 'too_late' THEN 'The slot begins after the horizon of the provider.' END))
$$;

-- What makes a timeslot or an appointment closed, for those who have to change it.
CREATE OR REPLACE FUNCTION closed_answer(cause text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT error_answer('slot.unavailable', jsonb_build_object('reason', 'closed', 'text', cause))
$$;

-- Why a slot is not a step of its timeslot, with the nearest starts before and after the given one at which a slot of this length can begin, whether they are free or
-- not.
CREATE OR REPLACE FUNCTION no_step_answer(timeslot timeslot, slot_start timestamptz, minutes integer) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  steps text := format('The timeslot has steps of %s minutes, from %s to %s', timeslot.raster, moment_json(timeslot.starts_at), moment_json(timeslot.ends_at));
  last_step bigint := floor((extract(epoch FROM timeslot.ends_at - timeslot.starts_at) / 60 - minutes) / timeslot.raster);
  before_start bigint := ceil(extract(epoch FROM slot_start - timeslot.starts_at) / 60 / timeslot.raster) - 1;
  starts text;
BEGIN
  IF timeslot.state <> 'BOOKABLE' THEN RETURN closed_answer('The timeslot is not bookable: its state is not BOOKABLE.'); END IF;
  IF timeslot.default_capacity < 1 THEN RETURN closed_answer('The timeslot is not bookable: its defaultCapacity is 0.'); END IF;
  IF minutes % timeslot.raster <> 0 OR last_step < 0 THEN
    RETURN error_answer('slot.unavailable', jsonb_build_object('reason', 'off_raster', 'text', steps || ': the duration must be a multiple of them, and fit in.'));
  END IF;
  SELECT string_agg(DISTINCT moment_json(timeslot.starts_at + make_interval(mins => (step * timeslot.raster)::integer)), ' or ')
    INTO starts
    FROM unnest(ARRAY[least(before_start, last_step), greatest(before_start + 1, 0)]) AS step
   WHERE step BETWEEN 0 AND last_step;
  RETURN error_answer('slot.unavailable', jsonb_build_object(
    'reason', 'off_raster', 'text', format('%s: the nearest starts of a slot of %s minutes are %s. List the slots to see what is free.', steps, minutes, starts)));
END
$$;

-- What a booking answers that names a timeslot which does not exist. One that was made from hours has been removed with them: others can be offered instead, as
-- when it had been hidden.
CREATE OR REPLACE FUNCTION missing_timeslot_answer(reference text) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN reference LIKE '%@hours' THEN closed_answer('The opening hours have changed, and have removed the timeslot. List the slots again.') ELSE error_answer('timeslot.not_found') END
$$;

CREATE OR REPLACE FUNCTION is_unavailable(answer jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT answer #>> '{error,code}' IS NOT DISTINCT FROM 'slot.unavailable'
$$;

-- The timeslots that offer an appointment which a booking made: bookable ones with a capacity, in which it lies.
CREATE OR REPLACE FUNCTION offering_timeslots(appointment appointment) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
  SELECT id
    FROM overlapping_timeslots(appointment.crm_id, appointment.provider_id, appointment.resource_reference, appointment.starts_at, appointment.ends_at)
   WHERE default_capacity >= 1 AND starts_at <= appointment.starts_at AND ends_at >= appointment.ends_at
$$;

-- Called by the other functions only.
--
-- Request: where, either startsAt, minutes (absent: one raster) and productReference, with the timeslot `named`, as it was before the locks, or
--   appointmentReference; crmId, providerId, ignoreNotice, origin; and for a participation that leaves the appointment `source`, the participationId.
-- Answer: the rejection, an answer (see answers.sql), if it cannot be booked; reclaimed, the number of expired reservations it removed; and the target, an appointment
--   to join, or else the period in which one is to be made, and the timeslot, as it is.
CREATE OR REPLACE FUNCTION claim_place(request jsonb, named timeslot, source uuid)
RETURNS TABLE (rejection jsonb, reclaimed bigint, target appointment, slot_start timestamptz, slot_end timestamptz, opening timeslot) LANGUAGE plpgsql AS $$
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
  is_blocked boolean;
BEGIN
  reclaimed := 0;
  IF in_timeslot THEN
    slot_start := request ->> 'startsAt';
    slot_end := slot_start + make_interval(mins => minutes);
    overlapping := ARRAY(
      SELECT id FROM near_timeslots(the_crm, the_provider, the_resource, slot_start, slot_end, named.buffer_before, named.buffer_after));
    locked := ARRAY(SELECT id FROM timeslot WHERE crm_id = the_crm AND id = ANY (overlapping) ORDER BY id FOR NO KEY UPDATE);
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND id = named.id;
    IF NOT FOUND THEN rejection := missing_timeslot_answer(named.reference); RETURN NEXT; RETURN; END IF;
    IF minutes <> coalesce((request ->> 'minutes')::integer, opening.raster::integer)
       OR (opening.buffer_before, opening.buffer_after) <> (named.buffer_before, named.buffer_after)
       OR EXISTS (
         SELECT FROM near_timeslots(the_crm, the_provider, the_resource, slot_start, slot_end, opening.buffer_before, opening.buffer_after)
          WHERE id <> ALL (locked)) THEN
      rejection := retry_answer('stale'); RETURN NEXT; RETURN;
    END IF;
    IF NOT is_step(opening, slot_start, slot_end) THEN rejection := no_step_answer(opening, slot_start, minutes); RETURN NEXT; RETURN; END IF;
    -- It was hidden, or elsewhere, when the locks were taken.
    IF opening.id <> ALL (locked) THEN rejection := retry_answer('stale'); RETURN NEXT; RETURN; END IF;
    overlapping := ARRAY(
      SELECT id FROM near_appointments(the_crm, the_provider, the_resource, slot_start, slot_end, opening.buffer_before, opening.buffer_after));
  ELSE
    SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'appointmentReference';
    overlapping := ARRAY[target.id];
    IF target.when_empty IS NOT NULL THEN
      offering := (SELECT id FROM offering_timeslots(target) AS id LIMIT 1);
      PERFORM FROM timeslot WHERE crm_id = the_crm AND id = offering FOR KEY SHARE;
    END IF;
  END IF;
  locked := ARRAY(SELECT id FROM appointment WHERE crm_id = the_crm AND id = ANY (overlapping || source) ORDER BY id FOR NO KEY UPDATE);
  reclaimed := (SELECT coalesce(sum(free_expired_seats(the_crm, id, request -> 'origin')), 0) FROM unnest(locked) AS id);
  IF NOT in_timeslot THEN
    SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND id = ANY (overlapping);
    IF NOT FOUND THEN rejection := error_answer('appointment.not_found'); RETURN NEXT; RETURN; END IF;
    slot_start := target.starts_at;
    slot_end := target.ends_at;
  END IF;

  -- The time is read behind the locks: an attempt may have waited for them.
  SELECT * INTO bounds FROM booking_bounds(the_crm, the_provider, scheduling_now(the_crm), (request ->> 'ignoreNotice')::boolean);
  rejection := CASE WHEN slot_start < bounds.earliest THEN unavailable_answer('too_soon') WHEN slot_start > bounds.latest THEN unavailable_answer('too_late') END;
  IF rejection IS NOT NULL THEN RETURN NEXT; RETURN; END IF;

  is_blocked := EXISTS (
    SELECT FROM overlapping_blocks(the_crm, the_provider, coalesce(target.resource_reference, the_resource), slot_start, slot_end));
  IF in_timeslot THEN
    IF is_blocked THEN rejection := unavailable_answer('blocked'); RETURN NEXT; RETURN; END IF;
    leaves_empty := ends_without(the_crm, source, (request ->> 'participationId')::uuid);
    FOR other IN
      SELECT * FROM near_appointments(the_crm, the_provider, the_resource, slot_start, slot_end, opening.buffer_before, opening.buffer_after) ORDER BY id
    LOOP
      CONTINUE WHEN leaves_empty AND other.id = source;
      IF other.id <> ALL (locked) THEN rejection := retry_answer('stale'); RETURN NEXT; RETURN; END IF;
      is_taken := true;
      IF other.starts_at = slot_start AND other.ends_at = slot_end AND other.product_reference = request ->> 'productReference' AND other.accept_bookings THEN
        is_full := true;
        IF target.id IS NULL AND other.taken < other.capacity THEN target := other; END IF;
      END IF;
    END LOOP;
    rejection := CASE WHEN target.id IS NULL AND is_taken THEN unavailable_answer(CASE WHEN is_full THEN 'full' ELSE 'taken' END) END;
  ELSE
    is_hidden := target.when_empty IS NOT NULL AND NOT EXISTS (SELECT FROM offering_timeslots(target));
    rejection := CASE
      WHEN target.state <> 'ACTIVE' THEN closed_answer('The appointment is cancelled. Book another slot.')
      WHEN is_hidden THEN closed_answer('The appointment was made by a booking, and lies in no bookable timeslot any more.')
      WHEN NOT target.accept_bookings THEN unavailable_answer('private')
      WHEN is_blocked THEN unavailable_answer('blocked')
      WHEN target.taken >= target.capacity THEN unavailable_answer('full') END;
    IF rejection IS NULL AND target.when_empty IS NOT NULL AND NOT EXISTS (SELECT FROM offering_timeslots(target) AS id WHERE id = offering) THEN
      rejection := retry_answer('stale'); RETURN NEXT; RETURN;
    END IF;
  END IF;
  RETURN NEXT;
END
$$;

-- Whether an appointment, which the caller has locked, ends when the participation leaves it.
CREATE OR REPLACE FUNCTION ends_without(the_crm text, the_appointment uuid, the_participation uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM appointment WHERE crm_id = the_crm AND id = the_appointment AND when_empty IS NOT NULL)
     AND NOT EXISTS (
       SELECT FROM participation
        WHERE crm_id = the_crm AND appointment_id = the_appointment AND id <> the_participation AND is_active(state))
$$;

-- Takes `seats` in the place that was claimed: in its appointment, or in one that is made there. The event of the participation is counted: it has the event_count
-- of the appointment that is returned.
--
-- Request: crmId, providerId, origin; for an appointment that is made newReference, contentDigest in hex, productReference, description, contactReference,
--   priceValue, priceCurrency.
CREATE OR REPLACE FUNCTION take_place(request jsonb, opening timeslot, target appointment, slot_start timestamptz, slot_end timestamptz, seats integer)
RETURNS appointment LANGUAGE plpgsql AS $$
BEGIN
  IF target.id IS NULL THEN
    INSERT INTO appointment (
      crm_id, provider_id, reference, resource_reference, product_reference, contact_reference, description, address, price_value, price_currency,
      starts_at, ends_at, capacity, taken, accept_bookings, buffer_before, buffer_after, content_digest, when_empty, event_count)
    VALUES (
      request ->> 'crmId', (request ->> 'providerId')::uuid, request ->> 'newReference', opening.resource_reference, request ->> 'productReference',
      request ->> 'contactReference', request ->> 'description', opening.address, (request ->> 'priceValue')::numeric, request ->> 'priceCurrency',
      slot_start, slot_end, opening.default_capacity, seats, opening.default_accept_bookings, opening.buffer_before, opening.buffer_after, decode(request ->> 'contentDigest', 'hex'), 'REMOVED', 2)
    RETURNING * INTO target;
    PERFORM append_appointment_changed(target, 'CREATED', request -> 'origin');
  ELSE
    UPDATE appointment SET taken = taken + seats, event_count = event_count + 1 WHERE crm_id = target.crm_id AND id = target.id RETURNING * INTO target;
  END IF;
  RETURN target;
END
$$;
