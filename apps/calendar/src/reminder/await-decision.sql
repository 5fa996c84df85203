-- Notes when it is to be said of the requests for an appointment that they wait for a decision (interface 6.3, 6.5), or of one of them. What was noted before no longer
-- counts: a request that was moved waits from now on. Called by triggers, for requests about which there was a mail.
--
-- The provider is reminded when half of the time until the start is over, but not within an hour. The person is told 12 hours before the start, or when half of
-- the time is over if that is later.
CREATE OR REPLACE FUNCTION await_decision(the_crm text, the_appointment uuid, the_participation uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  present timestamptz := scheduling_now(the_crm);
BEGIN
  INSERT INTO waiting_request (crm_id, participation_id, remind_at, tell_at)
  SELECT the_crm, participation.id, CASE WHEN reminder < starts_at THEN reminder END, greatest(half, starts_at - interval '12 hours')
    FROM appointment
   CROSS JOIN LATERAL (SELECT present + (starts_at - present) / 2 AS half) AS waiting
   CROSS JOIN LATERAL (SELECT greatest(half, present + interval '1 hour') AS reminder) AS reminding
    JOIN participation ON participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id
   WHERE appointment.crm_id = the_crm AND appointment.id = the_appointment AND starts_at > present AND participation.id = coalesce(the_participation, participation.id)
     AND participation.state = 'REQUESTED' AND participation.mail_event_id IS NOT NULL
  ON CONFLICT (crm_id, participation_id) DO UPDATE SET remind_at = excluded.remind_at, tell_at = excluded.tell_at;
END
$$;
