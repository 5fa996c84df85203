-- Cancels an appointment with all its participations (interface 3.2). Repeating it has no effect.
--
-- Request: crmId, providerId, providerVersion, reference, message (if given), archiveAfterDays, origin (see append-events.sql).
-- Answer: see answers.sql, with the text of the appointment.
CREATE OR REPLACE FUNCTION cancel_appointment(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  locked record;
  answer jsonb := '{}';
  target appointment%ROWTYPE;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_appointment(request, request ->> 'reference');
  target := locked.target;
  IF target.id IS NULL THEN RETURN error_answer('appointment.not_found') || jsonb_build_object('reclaimed', locked.reclaimed); END IF;
  IF target.state = 'ACTIVE' THEN
    answer := cancel_participations(target, request);
    target.event_count := target.event_count + (answer #>> '{entered,CANCELED}')::integer;
    PERFORM append_appointment_changed(target, 'CANCELLED', request -> 'origin');
    UPDATE appointment SET state = 'CANCELLED', taken = 0, event_count = target.event_count + 1 WHERE crm_id = target.crm_id AND id = target.id RETURNING * INTO target;
  END IF;
  RETURN appointment_answer(target, request) || answer || jsonb_build_object('reclaimed', locked.reclaimed);
END
$$;

-- Called by cancel_appointment only. Those that were active get a mail with the message.
CREATE OR REPLACE FUNCTION cancel_participations(target appointment, request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  with_mail jsonb := request -> 'origin' || jsonb_build_object('hasMail', true, 'changeId', gen_random_uuid());
  number integer;
  freed integer;
BEGIN
  WITH cancelled AS (
    UPDATE participation
       SET state = 'CANCELED', no_show = false, version = participation.version + 1, mailable_version = NULL, reserved_until = NULL,
           mail_event_id = CASE WHEN is_active(participation.state) THEN new_mail_event(with_mail) ELSE mail_event_id END
     WHERE crm_id = target.crm_id AND appointment_id = target.id AND state <> 'CANCELED'
    RETURNING old AS before, new AS after)
  SELECT count(*), count(*) FILTER (WHERE takes_seat((before).state)),
         count(add_message(after, CASE WHEN is_active((before).state) THEN request ->> 'message' END)),
         count(append_participation_changed(
           after, target.provider_id, 'APPOINTMENT_CANCELLED', (before).state, CASE WHEN is_active((before).state) THEN with_mail ELSE request -> 'origin' END,
           (before).mail_event_id, target.event_count + ordinal))
    INTO number, freed
    FROM (SELECT *, row_number() OVER (ORDER BY (after).id)::integer AS ordinal FROM cancelled) AS changes;
  RETURN jsonb_build_object('entered', jsonb_build_object('CANCELED', number), 'seats', -freed);
END
$$;
