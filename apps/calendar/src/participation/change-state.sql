-- Changes the state of a participation (interface 3.1), with its seat, its message and its event, and what the CRM notes of it. Called by other functions only, which have locked the appointment
-- and removed its expired reservations: whoever changes the participation holds that lock.
--
-- Arguments: the appointment and the participation as they are; the reference of the customer of a hold that has none yet (null: none); and of the request crmId,
--   ignoreCapacity, sendMails, message, note (of the owner) and origin; if given state, metadata (null clears it) and noShow; and if the customer service has
--   prepared the customer, prepared (see add-prepared-customer.sql).
CREATE OR REPLACE FUNCTION change_state(request jsonb, target appointment, present participation, owner_reference text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  new_state text := coalesce(request ->> 'state', present.state);
  new_metadata jsonb := CASE WHEN request ? 'metadata' THEN nullif(request -> 'metadata', 'null') ELSE present.metadata END;
  new_no_show boolean := new_state = 'BOOKED' AND coalesce((request ->> 'noShow')::boolean, present.no_show);
  seats integer := takes_seat(new_state)::integer - takes_seat(present.state)::integer;
  becomes_exempt boolean := coalesce((request ->> 'ignoreCapacity')::boolean, false);
  rejection jsonb;
  owner customer%ROWTYPE;
  origin jsonb;
  event_number integer;
  changed participation%ROWTYPE;
BEGIN
  IF new_state <> present.state THEN rejection := transition_error(present.state, new_state, target.state); END IF;
  rejection := coalesce(rejection, note_error(request, target, present, new_state));
  IF rejection IS NOT NULL THEN RETURN rejection; END IF;
  IF new_state = present.state THEN RETURN note_participation(request, target, present, new_metadata, new_no_show); END IF;
  -- Nobody knows yet for whom the seat is held.
  IF new_state = 'BOOKED' AND present.state = 'RESERVED' AND present.customer_id IS NULL AND present.name IS NULL AND owner_reference IS NULL THEN
    RETURN error_answer('booking.customer_missing');
  END IF;
  IF seats > 0 AND NOT (present.exempt OR becomes_exempt) AND target.taken >= target.capacity THEN RETURN no_seat_answer(target); END IF;
  IF owner_reference IS NOT NULL THEN
    owner := customer_to_book_for(request, target.provider_id, owner_reference);
    IF owner.id IS NULL THEN RETURN retry_answer('customer'); END IF;
  END IF;

  UPDATE appointment SET taken = taken + seats, event_count = event_count + 1 WHERE crm_id = the_crm AND id = target.id RETURNING event_count INTO event_number;
  origin := request -> 'origin' || jsonb_build_object('hasMail', (request ->> 'sendMails')::boolean
    AND (SELECT has_mail FROM transitions() WHERE from_state = present.state AND to_state = new_state));
  UPDATE participation
     SET state = new_state, metadata = new_metadata, no_show = new_no_show, version = version + 1, mailable_version = NULL, arranged_at = NULL, reserved_until = NULL, exempt = exempt OR becomes_exempt, customer_id = coalesce(owner.id, customer_id),
         mail_event_id = coalesce(new_mail_event(origin), mail_event_id), invited = invited OR invites(origin, new_state),
         -- Whoever was embedded is the customer from now on, whose data the customer service has.
         name = CASE WHEN owner.id IS NULL THEN name END, email = CASE WHEN owner.id IS NULL THEN email END, mobile = CASE WHEN owner.id IS NULL THEN mobile END,
         note = CASE WHEN owner.id IS NULL THEN note ELSE request ->> 'note' END
   WHERE crm_id = the_crm AND id = present.id
  RETURNING * INTO changed;
  IF owner.id IS NOT NULL AND present.name IS NOT NULL THEN
    -- They are digests of the embedded person, too.
    UPDATE appointment SET content_digest = '' WHERE crm_id = the_crm AND id = target.id;
    DELETE FROM idempotency_key WHERE crm_id = the_crm AND resource_ids @> ARRAY[target.id];
  END IF;
  PERFORM add_message(changed, request ->> 'message');
  PERFORM append_participation_changed(changed, target.provider_id, 'UPDATED', present.state, origin, present.mail_event_id, event_number);
  IF NOT is_active(new_state) THEN PERFORM end_if_empty(the_crm, target.id, origin); END IF;
  RETURN jsonb_build_object(
    'id', present.id, 'created', false, 'participation', participation_text(the_crm, present.id), 'entered', jsonb_build_object(new_state, 1), 'seats', seats);
END
$$;

-- Both are called by change_state only.

-- Why a CRM cannot note something of a participation, as an answer; null if it can. `new_state` is that of the participation after the change.
CREATE OR REPLACE FUNCTION note_error(request jsonb, target appointment, present participation, new_state text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  marks boolean := coalesce((request ->> 'noShow')::boolean, false);
BEGIN
  RETURN CASE
    WHEN (marks OR jsonb_typeof(request -> 'metadata') = 'object') AND present.reference = 'anonymous-' || present.id THEN error_answer('participation.anonymous')
    WHEN marks AND new_state <> 'BOOKED' THEN error_answer('participation.not_booked', jsonb_build_object('text', format(
      'Only a participation that is BOOKED can be marked as a no-show; this one is %s.', new_state)))
    WHEN marks AND target.starts_at > scheduling_now(target.crm_id) THEN error_answer('participation.not_started', jsonb_build_object('text', format(
      'The appointment starts at %s: a no-show can be marked from then on.', moment_json(target.starts_at)))) END;
END
$$;

-- Stores what the CRM notes, with an event. Nobody gets a mail, and the mails about the participation are about the same as before.
CREATE OR REPLACE FUNCTION note_participation(request jsonb, target appointment, present participation, new_metadata jsonb, new_no_show boolean)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  event_number integer;
  changed participation%ROWTYPE;
BEGIN
  IF (new_metadata, new_no_show) IS DISTINCT FROM (present.metadata, present.no_show) THEN
    UPDATE appointment SET event_count = event_count + 1 WHERE crm_id = target.crm_id AND id = target.id RETURNING event_count INTO event_number;
    UPDATE participation
       SET metadata = new_metadata, no_show = new_no_show, version = version + 1, mailable_version = last_mailable_version(present),
           arranged_at = coalesce(arranged_at, changed_at)
     WHERE crm_id = present.crm_id AND id = present.id
    RETURNING * INTO changed;
    PERFORM append_participation_changed(changed, target.provider_id, 'UPDATED', changed.state, request -> 'origin', NULL, event_number);
  END IF;
  RETURN jsonb_build_object('id', present.id, 'created', false, 'participation', participation_text(present.crm_id, present.id));
END
$$;
