-- Moves a participation to another state in one round trip, with the same locks in the same order as create_participation.
--
-- Request: crmId, participationId, expectedVersion, state, seats (the change in taken seats: -1, 0 or 1), needsActive, exempt (from now on),
--   message (may be null), origin (of the event, with its subject; see append-events.sql); and for a hold that gets a customer, providerReference and customerReference,
--   and if the customer service has prepared it, prepared (see add-prepared-customer.sql).
-- Answer: outcome, which is moved, gone, appointment_cancelled, full, customer_unknown, or stale when the version is not the expected one: the caller decides
--   again; reclaimed, the number of expired reservations it removed; for full also capacity.
CREATE OR REPLACE FUNCTION move_participation(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_participation uuid := request ->> 'participationId';
  expected_version integer := request ->> 'expectedVersion';
  seats integer := request ->> 'seats';
  becomes_exempt boolean := request ->> 'exempt';
  origin jsonb := request -> 'origin';
  place appointment%ROWTYPE;
  present participation%ROWTYPE;
  moved participation%ROWTYPE;
  person uuid;
  reclaimed integer;
  answer jsonb;
BEGIN
  SELECT * INTO place FROM appointment
   WHERE crm_id = the_crm
     AND id = (SELECT appointment_id FROM participation WHERE crm_id = the_crm AND id = the_participation)
     FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'gone'); END IF;
  reclaimed := free_expired_seats(the_crm, place.id, origin);
  IF reclaimed > 0 THEN
    -- Gone, if it ended with them.
    SELECT * INTO place FROM appointment WHERE crm_id = the_crm AND id = place.id;
  END IF;
  answer := jsonb_build_object('reclaimed', reclaimed);

  SELECT * INTO present FROM participation WHERE crm_id = the_crm AND id = the_participation FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN answer || jsonb_build_object('outcome', 'gone'); END IF;
  IF present.version <> expected_version THEN RETURN answer || jsonb_build_object('outcome', 'stale'); END IF;
  IF (request ->> 'needsActive')::boolean AND place.state <> 'ACTIVE' THEN RETURN answer || jsonb_build_object('outcome', 'appointment_cancelled'); END IF;
  IF seats > 0 AND NOT (present.exempt OR becomes_exempt) AND place.taken >= place.capacity THEN RETURN answer || jsonb_build_object('outcome', 'full', 'capacity', place.capacity); END IF;
  IF request ? 'customerReference' THEN
    SELECT customer.id INTO person
      FROM provider JOIN customer ON customer.crm_id = provider.crm_id AND customer.provider_id = provider.id
     WHERE provider.crm_id = the_crm AND provider.reference = request ->> 'providerReference' AND customer.reference = request ->> 'customerReference' AND customer.reference_known
     ORDER BY customer.refreshed_at DESC LIMIT 1 FOR KEY SHARE OF customer;
    IF NOT FOUND AND request ? 'prepared' THEN
      person := (add_prepared_customer(the_crm, place.provider_id, request ->> 'customerReference', request -> 'prepared')).id;
    END IF;
    IF person IS NULL THEN RETURN answer || jsonb_build_object('outcome', 'customer_unknown'); END IF;
  END IF;

  UPDATE appointment SET taken = taken + seats, event_count = event_count + 1 WHERE crm_id = the_crm AND id = place.id RETURNING * INTO place;
  UPDATE participation
     SET state = request ->> 'state', version = version + 1, reserved_until = NULL, exempt = exempt OR becomes_exempt, customer_id = coalesce(person, customer_id),
         mail_event_id = coalesce(new_mail_event(origin), mail_event_id), invited = invited OR invites(origin, request ->> 'state'),
         -- Whoever was embedded is the customer from now on, whose data the customer service has.
         name = CASE WHEN person IS NULL THEN name END, email = CASE WHEN person IS NULL THEN email END, mobile = CASE WHEN person IS NULL THEN mobile END,
         note = CASE WHEN person IS NULL THEN note END
   WHERE crm_id = the_crm AND id = the_participation
  RETURNING * INTO moved;
  IF person IS NOT NULL AND present.name IS NOT NULL THEN
    -- They are digests of the embedded person, too.
    UPDATE appointment SET content_digest = '' WHERE crm_id = the_crm AND id = place.id;
    DELETE FROM idempotency_key WHERE crm_id = the_crm AND resource_ids @> ARRAY[place.id];
  END IF;
  PERFORM append_participation_changed(moved, place.provider_id, 'UPDATED', present.state, origin, present.mail_event_id, place.event_count);
  IF NOT (request ->> 'needsActive')::boolean THEN PERFORM end_if_empty(the_crm, place.id, origin); END IF;
  IF request ->> 'message' IS NOT NULL THEN
    INSERT INTO participation_message (crm_id, participation_id, version, text)
    VALUES (the_crm, the_participation, expected_version + 1, request ->> 'message');
  END IF;
  RETURN answer || jsonb_build_object('outcome', 'moved');
END
$$;
