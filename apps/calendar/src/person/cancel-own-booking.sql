-- Cancels a booking for its person in one round trip, as update_participation does. One that is cancelled already stays as it is.
--
-- Request: crmId, providerId, providerVersion, participationId, message (if given: to the provider), origin (see append-events.sql).
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
      WHEN rights.is_cancellable OR (locked.present).state = 'CANCELED' THEN
        change_state(request || '{"state": "CANCELED", "ignoreCapacity": false, "sendMails": true}', locked.target, locked.present, NULL)
      ELSE link_refusal(rights.cancellable_until) END;
  END IF;
  RETURN coalesce(locked.rejection, answer) || jsonb_build_object('reclaimed', locked.reclaimed);
END
$$;
