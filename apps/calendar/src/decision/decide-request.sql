-- Confirms or declines a request for its provider in one round trip, as update_participation does, and notes whose link it was. Of several who decide at once one
-- does.
--
-- Request: crmId, providerId, providerVersion, participationId, state (BOOKED or CANCELED), message (if given: to the person), shown (see shown_of),
--   recipientId, origin (see append-events.sql).
-- Answer: see answers.sql.
CREATE OR REPLACE FUNCTION decide_request(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  present_time timestamptz := scheduling_now(the_crm);
  locked record;
  decided_request jsonb;
  answer jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  answer := locked.rejection;
  IF answer IS NULL THEN
    answer := CASE
      WHEN (locked.present).state <> 'REQUESTED' THEN error_answer('link.not_allowed')
      WHEN (locked.target).starts_at <= present_time THEN error_answer('link.too_late')
      WHEN shown_of(locked.target) <> request ->> 'shown' THEN error_answer('link.changed') END;
  END IF;
  IF answer IS NULL THEN
    decided_request := request || jsonb_build_object(
      'ignoreCapacity', false, 'sendMails', true, 'origin', (request -> 'origin') || '{"decided": true}');
    answer := change_state(decided_request, locked.target, locked.present, NULL);
    IF answer ? 'entered' THEN
      INSERT INTO participation_decision (crm_id, participation_id, confirmed, recipient_id, decided_at)
      VALUES (the_crm, (locked.present).id, request ->> 'state' = 'BOOKED', (request ->> 'recipientId')::uuid, present_time);
    END IF;
  END IF;
  RETURN answer || jsonb_build_object('reclaimed', locked.reclaimed);
END
$$;
