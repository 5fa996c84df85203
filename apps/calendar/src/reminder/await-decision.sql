-- Notes when it is to be said of the requests for an appointment that they wait for a decision (interface 6.3, 6.5), or of one of them. What was noted before no longer
-- counts: a request that was moved waits from now on. Called by triggers, for requests about which there was a mail.
CREATE OR REPLACE FUNCTION await_decision(the_crm text, the_appointment uuid, the_participation uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  present timestamptz := scheduling_now(the_crm);
  start timestamptz;
  half timestamptz;
  reminder timestamptz;
  ids uuid[] := ARRAY[the_participation];
BEGIN
  SELECT starts_at INTO start FROM appointment WHERE crm_id = the_crm AND id = the_appointment AND starts_at > present;
  IF start IS NULL THEN RETURN; END IF;
  IF the_participation IS NULL THEN
    SELECT array_agg(id) INTO ids FROM participation
     WHERE crm_id = the_crm AND appointment_id = the_appointment AND state = 'REQUESTED' AND mail_event_id IS NOT NULL;
  END IF;

  half := present + (start - present) / 2;
  -- The mail about the request has just been read.
  reminder := greatest(half, present + interval '1 hour');
  INSERT INTO waiting_request (crm_id, participation_id, remind_at, tell_at)
  SELECT the_crm, id, CASE WHEN reminder < start THEN reminder END, greatest(half, start - interval '12 hours') FROM unnest(ids) AS id
  ON CONFLICT (crm_id, participation_id) DO UPDATE SET remind_at = excluded.remind_at, tell_at = excluded.tell_at;
END
$$;
