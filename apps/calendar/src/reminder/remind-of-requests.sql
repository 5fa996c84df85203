-- Says of requests that still wait for a decision that it is time to remind the provider, or to tell the person, each as an event (interface 6.3, 6.5). What counts are
-- the request, the appointment and the rules as they are now: with notifyProvider the provider is reminded, and with it or with confirmation REQUESTED the person
-- is told. Nothing is said once the appointment has begun.
--
-- Request: limit: so many requests are considered; origin (see append-events.sql).
-- Answer: written, how many events; isBehind, whether there may be more that are due already.
CREATE OR REPLACE FUNCTION remind_of_requests(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  max_requests integer := request ->> 'limit';
  real_present timestamptz := scheduling_now();
  answer jsonb;
BEGIN
  WITH clock AS MATERIALIZED (
    SELECT crm_id, scheduling_now(crm_id) AS present FROM sandbox_clock
  ), due AS MATERIALIZED (
    SELECT crm_id, participation_id, remind_at, tell_at, scheduling_now(crm_id) AS present
      FROM waiting_request
     WHERE (crm_id, participation_id) IN (
       (SELECT crm_id, participation_id FROM waiting_request AS waiting
         WHERE due_at <= real_present AND NOT EXISTS (SELECT FROM clock WHERE clock.crm_id = waiting.crm_id)
         ORDER BY due_at LIMIT max_requests)
       UNION ALL
       (SELECT crm_id, participation_id
          FROM clock CROSS JOIN LATERAL (
            SELECT participation_id FROM waiting_request WHERE crm_id = clock.crm_id AND due_at <= clock.present ORDER BY due_at LIMIT max_requests) AS waiting
         LIMIT max_requests))
       FOR UPDATE SKIP LOCKED
  ), said AS MATERIALIZED (
    SELECT due.*, participation.version, participation.customer_id, participation.mail_event_id, appointment.provider_id, appointment.starts_at,
           coalesce(remind_at <= present AND notify_provider, false) AS reminds,
           coalesce(tell_at <= present AND (notify_provider OR confirmation = 'REQUESTED'), false) AS tells,
           appointment.state = 'ACTIVE' AND participation.state = 'REQUESTED' AND starts_at > present AS is_open
      FROM due
      JOIN participation ON participation.crm_id = due.crm_id AND participation.id = due.participation_id
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      LEFT JOIN booking_rules AS rules ON rules.crm_id = appointment.crm_id AND rules.provider_id = appointment.provider_id
  ), written AS (
    INSERT INTO outbox (subject, data, request_id, traceparent)
    SELECT 'scheduling.calendar.v1.participation-undecided',
           json_build_object(
             'crmId', crm_id,
             'participationId', participation_id,
             'version', version,
             'providerId', provider_id,
             'customerId', customer_id,
             'start', moment_json(starts_at),
             'expiresAt', moment_json(starts_at + (real_present - present)),
             'remindProvider', reminds,
             'tellPerson', tells,
             'previousMailEventId', mail_event_id),
           coalesce(request #>> '{origin,request_id}', gen_random_uuid()::text), request #>> '{origin,traceparent}'
      FROM said WHERE is_open AND (reminds OR tells)
    RETURNING 1
  ), ended AS (
    DELETE FROM waiting_request USING said
     WHERE waiting_request.crm_id = said.crm_id AND waiting_request.participation_id = said.participation_id
       AND NOT (is_open AND (said.remind_at > present OR said.tell_at > present) IS TRUE)
  ), changed AS (
    UPDATE waiting_request
       SET remind_at = CASE WHEN said.remind_at > present THEN said.remind_at END, tell_at = CASE WHEN said.tell_at > present THEN said.tell_at END
      FROM said
     WHERE waiting_request.crm_id = said.crm_id AND waiting_request.participation_id = said.participation_id
       AND is_open AND (said.remind_at > present OR said.tell_at > present)
  )
  SELECT jsonb_build_object('written', (SELECT count(*) FROM written), 'isBehind', (SELECT count(*) FROM due) >= max_requests) INTO answer;
  RETURN answer;
END
$$;
