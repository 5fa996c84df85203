-- Notes that the person of a booking will be there, in one round trip. Nobody gets a mail. Again: no change.
--
-- Request: crmId, providerId, providerVersion, participationId, shownStart (see has_other_start), origin (see append-events.sql).
-- Answer: see answers.sql.
CREATE OR REPLACE FUNCTION confirm_attendance(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  locked record;
  rights record;
  event_number integer;
  confirmed participation%ROWTYPE;
  answer jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  answer := locked.rejection;
  IF answer IS NULL THEN
    SELECT * INTO rights FROM own_booking_rights(locked.present, locked.target, scheduling_now(the_crm));
    answer := jsonb_build_object('id', (locked.present).id, 'created', false);
    IF rights.is_confirmable AND has_other_start(locked.target, request) THEN
      answer := error_answer('link.changed');
    ELSIF rights.is_confirmable THEN
      UPDATE appointment SET event_count = event_count + 1 WHERE crm_id = the_crm AND id = (locked.target).id RETURNING event_count INTO event_number;
      UPDATE participation SET version = version + 1, attendance_confirmed_at = scheduling_now(the_crm), arranged_at = coalesce(arranged_at, changed_at)
       WHERE crm_id = the_crm AND id = (locked.present).id
      RETURNING * INTO confirmed;
      PERFORM append_participation_changed(confirmed, (locked.target).provider_id, 'UPDATED', confirmed.state, request -> 'origin', NULL, event_number);
    ELSIF (locked.present).state <> 'BOOKED' THEN
      answer := link_refusal(NULL);
    ELSIF (locked.present).attendance_confirmed_at IS NULL THEN
      answer := link_refusal((locked.target).starts_at);
    END IF;
  END IF;
  RETURN answer || jsonb_build_object('reclaimed', locked.reclaimed);
END
$$;
