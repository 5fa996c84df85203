-- Writes the reminders of a provider that are due (interface 6.3, 10.4), each as an event, and moves the provider's marks, in one transaction. A mark says that no
-- reminder of its length is due any more before that time: a reminder is due so many minutes, of elapsed time, before the start. So a booking that is made, moved or
-- cancelled needs nothing: what counts is the appointment as it is when the mark passes.
--
-- Request: crmId, providerId; limit: so many appointments are considered, or more if some have the same time; origin (see append-events.sql).
-- Answer: written, how many reminders; isBehind, whether there may be more that are due already.
CREATE OR REPLACE FUNCTION remind(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_appointments integer := request ->> 'limit';
  nothing CONSTANT jsonb := '{"written": 0, "isBehind": false}';
  -- When a participation was changed is known in real time.
  real_present timestamptz;
  present timestamptz;
  clock_set_at timestamptz;
  locked integer;
  answer jsonb;
BEGIN
  -- Whoever has the marks decides. Others do not wait: another replica is writing these reminders, or the rules are being changed, and the next round comes soon.
  SELECT count(*) INTO locked FROM (
    SELECT FROM reminder_mark WHERE crm_id = the_crm AND provider_id = the_provider ORDER BY minutes FOR NO KEY UPDATE SKIP LOCKED) AS marks;
  IF locked = 0 OR locked < (SELECT count(*) FROM reminder_mark WHERE crm_id = the_crm AND provider_id = the_provider) THEN RETURN nothing; END IF;
  -- After the lock, so that it is later than what the previous holder has written.
  real_present := scheduling_now();
  present := scheduling_now(the_crm);
  -- The server's clock was set back. Whoever sets the clock of a sandbox back does this at once.
  UPDATE reminder_mark SET until = present WHERE crm_id = the_crm AND provider_id = the_provider AND until > present;
  SELECT set_at INTO clock_set_at FROM sandbox_clock WHERE crm_id = the_crm;

  WITH mark AS MATERIALIZED (
    SELECT minutes, until, make_interval(mins => minutes) AS lead, least(interval '15 minutes', make_interval(secs => minutes * 30)) AS least_left,
           least(interval '60 minutes', make_interval(secs => minutes * 30)) AS just_read
      FROM reminder_mark
     WHERE crm_id = the_crm AND provider_id = the_provider
  ), due AS MATERIALIZED (
    -- After an outage a mark is behind, and what has less than least_left until its start is left out.
    SELECT mark.minutes, mark.least_left, mark.just_read, appointment.id, appointment.starts_at, appointment.starts_at - mark.lead AS due_at
      FROM mark CROSS JOIN LATERAL (
        SELECT id, starts_at FROM appointment
         WHERE crm_id = the_crm AND provider_id = the_provider AND state = 'ACTIVE'
           AND starts_at >= greatest(mark.until + mark.lead, present + mark.least_left) AND starts_at < present + mark.lead
         ORDER BY starts_at FETCH FIRST max_appointments ROWS WITH TIES) AS appointment
  ), reached AS MATERIALIZED (
    -- How far this call gets: all marks to the same time, so that no shorter reminder is written before a longer one of the same booking is considered.
    SELECT coalesce(
      (SELECT due_at + interval '1 microsecond' FROM due ORDER BY due_at OFFSET max_appointments - 1 LIMIT 1),
      present) AS until
  ), written AS (
    INSERT INTO outbox (subject, data, request_id, traceparent)
    SELECT 'scheduling.calendar.v1.participation-reminder-due',
           json_build_object(
             'crmId', the_crm,
             'participationId', participation.id,
             'version', participation.version,
             'providerId', the_provider,
             'customerId', participation.customer_id,
             'start', moment_json(due.starts_at),
             'minutes', due.minutes,
             'expiresAt', moment_json(due.starts_at - due.least_left + (real_present - present)),
             'previousMailEventId', participation.mail_event_id),
           coalesce(request #>> '{origin,request_id}', gen_random_uuid()::text), request #>> '{origin,traceparent}'
      FROM due CROSS JOIN LATERAL (
        SELECT id, last_mailable_version(participation) AS version, customer_id, mail_event_id, coalesce(arranged_at, changed_at) AS arranged_at FROM participation
         WHERE crm_id = the_crm AND appointment_id = due.id AND state = 'BOOKED') AS participation
     WHERE due.due_at < (SELECT until FROM reached)
       -- Of several reminders of a booking that are due at the same time, which happens after an outage only, the person gets the shortest: the others say the same,
       -- and the time that they were meant for is over. Only what this call would write otherwise counts, or a later one by the marks as they are now. A shorter
       -- length whose mark is past the booking says nothing, because the rule is newer than that: then the longer one is all that the person gets.
       AND NOT EXISTS (
         SELECT FROM mark AS shorter
          WHERE shorter.minutes < due.minutes AND due.starts_at >= shorter.until + shorter.lead AND due.starts_at < present + shorter.lead)
       -- The mail about the booking, its move or its confirmation was just read when the reminder became due, or came later. It has less time for a shorter reminder,
       -- so there is no longer one in its place. How much later it is by the clock of a sandbox is not known of changes before it was set: that counts as long ago.
       AND NOT (participation.arranged_at > due.due_at - (present - real_present) - due.just_read AND participation.arranged_at >= coalesce(clock_set_at, '-infinity'))
    RETURNING 1
  ), moved AS (
    UPDATE reminder_mark SET until = reached.until FROM reached
     WHERE crm_id = the_crm AND provider_id = the_provider AND reminder_mark.until < reached.until
  )
  SELECT jsonb_build_object('written', (SELECT count(*) FROM written), 'isBehind', reached.until < present) INTO answer FROM reached;
  RETURN answer;
END
$$;
