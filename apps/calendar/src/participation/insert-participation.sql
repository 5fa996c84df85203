-- Inserts a participation with its message and its event. Called by other functions only, which have taken its seat and counted its event.
--
-- Arguments: the appointment as it is then, with the event_count that the event has; the customer (all columns null: none); and of the request crmId, id, reference,
--   state, ignoreCapacity, sendMails, message, note, metadata and origin.
CREATE OR REPLACE FUNCTION insert_participation(request jsonb, target appointment, person customer) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  new_id uuid := request ->> 'id';
  new_state text := request ->> 'state';
  origin jsonb := request -> 'origin' || jsonb_build_object('hasMail', has_mail_on_creation(new_state) AND (request ->> 'sendMails')::boolean);
  made participation%ROWTYPE;
BEGIN
  INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, note, state, exempt, reserved_until, mail_event_id, invited, metadata)
  VALUES (
    the_crm, new_id, target.id, person.id, request ->> 'reference', request ->> 'note', new_state, coalesce((request ->> 'ignoreCapacity')::boolean, false),
    expiry_of(new_state, the_crm), new_mail_event(origin), invites(origin, new_state),
    nullif(request -> 'metadata', 'null'))
  RETURNING * INTO made;
  PERFORM add_message(made, request ->> 'message');
  PERFORM append_participation_changed(made, target.provider_id, 'CREATED', NULL, origin, NULL, target.event_count);
  RETURN jsonb_build_object(
    'id', new_id, 'created', true, 'participation', (SELECT content::text FROM participation_json(made, target.reference, person)),
    'entered', jsonb_build_object(new_state, 1), 'seats', takes_seat(new_state)::integer);
END
$$;

-- Stores the text that the caller sent with the present version of a participation; null: none.
CREATE OR REPLACE FUNCTION add_message(participation participation, message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF message IS NOT NULL THEN
    INSERT INTO participation_message (crm_id, participation_id, version, text) VALUES (participation.crm_id, participation.id, participation.version, message);
  END IF;
END
$$;
