-- Moves a booking to another slot in one round trip (interface 10.3); see claim-place.sql. Its appointment and the one of the new place are locked together, by id.
--
-- Request: crmId, providerId, providerVersion, and where, as book_slot has it, but productReference and the other details of an appointment that is made may
--   be absent: then they are those of the present appointment. ignoreNotice. Of the participation the reference, message (if given), sendMails, origin (see
--   append-events.sql). If its person moves it, byPerson, resources (those to which the person may move it) and
--   shownStart, of the place (see has_other_start).
-- Answer: see answers.sql, and slot (see slot-details.sql).
CREATE OR REPLACE FUNCTION move_booking(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  origin jsonb := request -> 'origin' || jsonb_build_object('hasMail', (request ->> 'sendMails')::boolean);
  keeps_product boolean := request ->> 'productReference' IS NULL;
  opening timeslot%ROWTYPE;
  source appointment%ROWTYPE;
  target appointment%ROWTYPE;
  present participation%ROWTYPE;
  moved participation%ROWTYPE;
  by_person boolean := coalesce((request ->> 'byPerson')::boolean, false);
  claim record;
  seats integer;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO present FROM participation WHERE crm_id = the_crm AND reference = request ->> 'participationReference';
  SELECT * INTO source FROM appointment WHERE crm_id = the_crm AND id = present.appointment_id AND provider_id = the_provider;
  IF NOT FOUND OR present.reserved_until <= scheduling_now(the_crm) THEN RETURN error_answer('participation.not_found'); END IF;
  IF present.state NOT IN ('REQUESTED', 'BOOKED') THEN
    IF by_person THEN RETURN link_refusal(NULL); END IF;
    RETURN error_answer('participation.move_not_allowed', jsonb_build_object('text', format('A participation that is %s cannot move to another slot.', present.state)));
  END IF;
  IF request ? 'timeslotReference' THEN
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'timeslotReference';
    IF NOT FOUND THEN RETURN missing_timeslot_answer(request ->> 'timeslotReference'); END IF;
    IF keeps_product THEN request := request || jsonb_build_object('productReference', source.product_reference); END IF;
  END IF;
  IF is_place(source, opening, request) THEN RETURN present_booking_answer(the_crm, present.id, request ->> 'timeslotReference'); END IF;

  SELECT * INTO claim FROM claim_place(request || jsonb_build_object('participationId', present.id), opening, source.id);
  -- The place may be unavailable because the participation has just moved there.
  IF claim.rejection IS NULL OR is_unavailable(claim.rejection) THEN
    SELECT * INTO present FROM participation
     WHERE crm_id = the_crm AND id = present.id AND appointment_id = source.id AND version = present.version
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN claim.rejection := retry_answer('stale'); END IF;
    -- As it is behind its lock: somebody may have changed it since.
    SELECT * INTO source FROM appointment WHERE crm_id = the_crm AND id = source.id;
  END IF;
  IF by_person AND present.id IS NOT NULL THEN
    claim.rejection := coalesce(
      own_move_refusal(request, present, source, claim.opening, claim.target, claim.slot_end - claim.slot_start), claim.rejection);
  END IF;
  IF claim.rejection IS NOT NULL THEN RETURN claim.rejection || jsonb_build_object('reclaimed', claim.reclaimed); END IF;

  request := request || jsonb_build_object(
    'description', coalesce(request ->> 'description', CASE WHEN keeps_product THEN source.description END),
    'contactReference', coalesce(request ->> 'contactReference', source.contact_reference));
  IF request ->> 'priceValue' IS NULL THEN request := request || jsonb_build_object('priceValue', source.price_value, 'priceCurrency', source.price_currency); END IF;
  seats := takes_seat(present.state)::integer;
  UPDATE appointment SET taken = taken - seats, event_count = event_count + 1, when_empty = CASE WHEN when_empty IS NOT NULL THEN 'CANCELLED' END
   WHERE crm_id = the_crm AND id = source.id
  RETURNING * INTO source;
  target := take_place(request, claim.opening, claim.target, claim.slot_start, claim.slot_end, seats);
  -- From now on the public rules apply to it.
  UPDATE participation
     SET appointment_id = target.id, version = version + 1, exempt = false, mail_event_id = coalesce(new_mail_event(origin), mail_event_id),
         invited = invited OR invites(origin, state), attendance_confirmed_at = NULL, no_show = false, mailable_version = NULL, arranged_at = NULL,
         moves_by_person = moves_by_person + by_person::integer,
         untold_version = CASE WHEN has_mail(origin) THEN untold_version ELSE version + 1 END
   WHERE crm_id = the_crm AND id = present.id
  RETURNING * INTO moved;
  PERFORM add_message(moved, request ->> 'message');
  IF has_mail(origin) THEN
    INSERT INTO participation_previous (crm_id, participation_id, version, starts_at, ends_at, description, address)
    VALUES (the_crm, moved.id, moved.version, source.starts_at, source.ends_at, source.description, source.address);
  END IF;
  PERFORM append_participation_changed(moved, the_provider, 'MOVED', moved.state, origin, present.mail_event_id, target.event_count, source.id, source.event_count);
  PERFORM end_if_empty(the_crm, source.id, origin);
  RETURN jsonb_build_object('id', present.id, 'created', false, 'reclaimed', claim.reclaimed, 'entered', '{"MOVED": 1}'::jsonb) || booking_content(the_crm, present.id, request ->> 'timeslotReference');
END
$$;

-- Why the person of a booking may not move it to the place that was claimed, as an answer (see answers.sql); null if they may. The place must be for the same product,
-- as long as the booking is, at its price, on one of the given resources, and begin when the person was shown.
CREATE OR REPLACE FUNCTION own_move_refusal(
  request jsonb, present participation, source appointment, opening timeslot, target appointment, duration interval)
RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  rights record;
BEGIN
  SELECT * INTO rights FROM own_booking_rights(present, source, scheduling_now(source.crm_id));
  RETURN CASE
    WHEN NOT rights.is_movable THEN link_refusal(rights.movable_until)
    WHEN duration <> source.ends_at - source.starts_at
      OR target.id IS NOT NULL
         AND (target.product_reference, target.price_value, target.price_currency)
             IS DISTINCT FROM (source.product_reference, source.price_value, source.price_currency)
      OR NOT request -> 'resources' ? coalesce(target.resource_reference, opening.resource_reference)
      OR has_other_start(target, request) THEN unavailable_answer('closed') END;
END
$$;
