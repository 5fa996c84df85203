-- Cancels a booking for its person in one round trip, as update_participation does. One that is cancelled already stays as it is.
--
-- Request: crmId, providerId, providerVersion, participationId, message (if given: to the provider), shownStart (see has_other_start), origin (see
--   append-events.sql).
-- Answer: see answers.sql.
CREATE OR REPLACE FUNCTION cancel_own_booking(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  locked record;
  rights record;
  answer jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  IF locked.rejection IS NULL THEN
    SELECT * INTO rights FROM own_booking_rights(locked.present, locked.target, scheduling_now(request ->> 'crmId'));
    answer := CASE
      WHEN NOT rights.is_cancellable AND (locked.present).state <> 'CANCELED' THEN link_refusal(rights.cancellable_until)
      WHEN rights.is_cancellable AND has_other_start(locked.target, request) THEN error_answer('link.changed')
      ELSE change_state(request || '{"state": "CANCELED", "ignoreCapacity": false, "sendMails": true}', locked.target, locked.present, NULL) END;
  END IF;
  RETURN coalesce(locked.rejection, answer) || jsonb_build_object('reclaimed', locked.reclaimed);
END
$$;
