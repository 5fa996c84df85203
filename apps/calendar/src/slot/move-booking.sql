-- Moves a participation to another place in one round trip; see claim-place.sql. Its appointment and the one of the new place are locked together, by id.
--
-- Request: crmId, providerId, providerVersion, and where, as book_slot has it, but productReference and the other details of an appointment that is made may
--   be null: then they are those of the present appointment. ignoreNotice. The participation: participationId, expectedVersion, appointmentId (the present
--   one), takesSeat, message (may be null), origin (of the event, with its subject; see append-events.sql).
-- Answer: outcome and reclaimed, the number of expired reservations it removed. The outcome is moved, unchanged (it is there already), provider_changed,
--   timeslot_unknown, appointment_unknown, unavailable with a reason, or stale: the caller decides again.
CREATE OR REPLACE FUNCTION move_booking(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  the_participation uuid := request ->> 'participationId';
  seats integer := (request ->> 'takesSeat')::boolean::integer;
  origin jsonb := request -> 'origin';
  keeps_product boolean := request ->> 'productReference' IS NULL;
  opening timeslot%ROWTYPE;
  source appointment%ROWTYPE;
  place appointment%ROWTYPE;
  present participation%ROWTYPE;
  moved participation%ROWTYPE;
  claim record;
  answer jsonb;
BEGIN
  PERFORM FROM provider WHERE crm_id = the_crm AND id = the_provider AND version = (request ->> 'providerVersion')::integer;
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'provider_changed'); END IF;

  SELECT * INTO source FROM appointment WHERE crm_id = the_crm AND id = (request ->> 'appointmentId')::uuid;
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'stale'); END IF;
  IF request ? 'timeslotReference' THEN
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'timeslotReference';
    IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'timeslot_unknown'); END IF;
    IF keeps_product THEN request := request || jsonb_build_object('productReference', source.product_reference); END IF;
  END IF;
  IF is_place(source, opening, request) THEN RETURN jsonb_build_object('outcome', 'unchanged'); END IF;

  SELECT * INTO claim FROM claim_place(request, opening, source.id);
  answer := jsonb_build_object('reclaimed', claim.reclaimed);
  IF claim.outcome NOT IN ('claimed', 'unavailable') THEN RETURN answer || jsonb_build_object('outcome', claim.outcome); END IF;
  -- The place may be unavailable because the participation has just moved there.
  SELECT * INTO present FROM participation
   WHERE crm_id = the_crm AND id = the_participation AND appointment_id = source.id AND version = (request ->> 'expectedVersion')::integer
     FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN answer || jsonb_build_object('outcome', 'stale'); END IF;
  IF claim.outcome = 'unavailable' THEN RETURN answer || jsonb_build_object('outcome', claim.outcome, 'reason', claim.reason); END IF;

  -- As it is behind its lock: somebody may have changed it since.
  SELECT * INTO source FROM appointment WHERE crm_id = the_crm AND id = source.id;
  request := request || jsonb_build_object(
    'description', coalesce(request ->> 'description', CASE WHEN keeps_product THEN source.description END),
    'contactReference', coalesce(request ->> 'contactReference', source.contact_reference));
  IF request ->> 'priceValue' IS NULL THEN request := request || jsonb_build_object('priceValue', source.price_value, 'priceCurrency', source.price_currency); END IF;
  UPDATE appointment SET taken = taken - seats, event_count = event_count + 1, when_empty = CASE WHEN when_empty IS NOT NULL THEN 'CANCELLED' END
   WHERE crm_id = the_crm AND id = source.id
  RETURNING * INTO source;
  place := take_place(request, claim.opening, claim.place, claim.slot_start, claim.slot_end, seats);
  -- Placed by the public rules from now on.
  UPDATE participation
     SET appointment_id = place.id, version = version + 1, exempt = false, mail_event_id = coalesce(new_mail_event(origin), mail_event_id),
         invited = invited OR invites(origin, state)
   WHERE crm_id = the_crm AND id = the_participation
  RETURNING * INTO moved;
  PERFORM append_participation_changed(moved, the_provider, 'MOVED', moved.state, origin, present.mail_event_id, place.event_count, source.id, source.event_count);
  PERFORM end_if_empty(the_crm, source.id, origin);
  IF request ->> 'message' IS NOT NULL THEN
    INSERT INTO participation_message (crm_id, participation_id, version, text)
    VALUES (the_crm, the_participation, (request ->> 'expectedVersion')::integer + 1, request ->> 'message');
  END IF;
  RETURN answer || jsonb_build_object('outcome', 'moved');
END
$$;
