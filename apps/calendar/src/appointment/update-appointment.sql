-- Changes an appointment (interface 4.2). Like its creation, it is never rejected for what else takes place at that time, and nobody loses a seat.
--
-- Request: crmId, providerId, providerVersion, reference, changes (columns of the appointment by their names; null clears one), sendMails, archiveAfterDays, origin (see
--   append-events.sql).
-- Answer: see answers.sql, with the text of the appointment.
CREATE OR REPLACE FUNCTION update_appointment(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  locked record;
  reclaimed jsonb;
  target appointment%ROWTYPE;
  changed appointment%ROWTYPE;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_appointment(request, request ->> 'reference');
  reclaimed := jsonb_build_object('reclaimed', locked.reclaimed);
  target := locked.target;
  IF target.id IS NULL THEN RETURN reclaimed || error_answer('appointment.not_found'); END IF;
  IF target.state <> 'ACTIVE' THEN
    RETURN reclaimed || error_answer('appointment.cancelled', '{"text": "The appointment is cancelled and cannot be changed."}');
  END IF;
  changed := jsonb_populate_record(target, request -> 'changes');
  IF changed.ends_at <= changed.starts_at THEN
    RETURN reclaimed || error_answer('appointment.invalid', '{"errors": [{"pointer": "/end", "detail": "must be after start"}]}');
  END IF;

  IF changed IS DISTINCT FROM target THEN
    UPDATE appointment
       SET starts_at = changed.starts_at, ends_at = changed.ends_at, capacity = changed.capacity, accept_bookings = changed.accept_bookings,
           description = changed.description, contact_reference = changed.contact_reference, notes = changed.notes, address = changed.address, metadata = changed.metadata,
           revision = revision + 1, event_count = event_count + 1
     WHERE crm_id = target.crm_id AND id = target.id
    RETURNING * INTO changed;
    -- The event says the new capacity.
    target.capacity := changed.capacity;
    PERFORM append_appointment_changed(target, 'UPDATED', request -> 'origin');
    IF (changed.starts_at, changed.ends_at, changed.description, changed.address) IS DISTINCT FROM (target.starts_at, target.ends_at, target.description, target.address) THEN
      PERFORM update_participants(changed, request || jsonb_build_object('isMoved', changed.starts_at <> target.starts_at, 'previous', to_jsonb(target)));
    END IF;
  END IF;
  RETURN reclaimed || appointment_answer(changed, request);
END
$$;

-- Called by update_appointment only, if participants see a difference. Those who are booked or requested get a new version, which the event in their calendar gets as
-- well, and a mail, for which what the appointment was is kept.
--
-- Request: that of update_appointment with isMoved, and previous, the appointment as it was.
CREATE OR REPLACE FUNCTION update_participants(target appointment, request jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  origin jsonb := request -> 'origin' || jsonb_build_object('hasMail', (request ->> 'sendMails')::boolean, 'changeId', gen_random_uuid());
  previous appointment := jsonb_populate_record(NULL::appointment, request -> 'previous');
  number integer;
BEGIN
  WITH updated AS (
    UPDATE participation
       SET version = participation.version + 1, mail_event_id = coalesce(new_mail_event(origin), mail_event_id), invited = invited OR invites(origin, state),
           -- Whoever said so meant the previous time and place.
           attendance_confirmed_at = NULL,
           -- Nobody has missed what has not begun.
           no_show = no_show AND target.starts_at <= scheduling_now(target.crm_id),
           mailable_version = NULL,
           untold_version = CASE WHEN has_mail(origin) THEN untold_version ELSE participation.version + 1 END,
           arranged_at = CASE WHEN (request ->> 'isMoved')::boolean THEN NULL ELSE coalesce(arranged_at, changed_at) END
     WHERE crm_id = target.crm_id AND appointment_id = target.id AND state IN ('REQUESTED', 'BOOKED')
    RETURNING old AS before, new AS after),
  kept AS (
    INSERT INTO participation_previous (crm_id, participation_id, version, starts_at, ends_at, description, address)
    SELECT (after).crm_id, (after).id, (after).version, previous.starts_at, previous.ends_at, previous.description, previous.address
      FROM updated WHERE has_mail(origin))
  SELECT count(append_participation_changed(
           after, target.provider_id, 'APPOINTMENT_CHANGED', (before).state, origin, (before).mail_event_id, target.event_count + ordinal))
    INTO number
    FROM (SELECT *, row_number() OVER (ORDER BY (after).id)::integer AS ordinal FROM updated) AS changes;
  UPDATE appointment SET event_count = event_count + number WHERE crm_id = target.crm_id AND id = target.id;
END
$$;
