-- Stores that a mail is to be written, unless that was stored or the mail written before, or its recipient or its provider was erased. Of those about the same thing that wait,
-- the ones between the first and the newest are superseded, but none that is urgent or being written.
--
-- Request: crmId, eventId, aboutId, version, template, customerId, providerId, actor, requestId; calendarMethod if it has a calendar file,
--   traceparent if it is traced, previousEventId if the mail about that event comes first; startsAt or requestedStartsAt, and expiresAt, if it is a reminder of a booking or a request; maxWaiting, how many about one thing may wait, not counting those with urgentTemplates.
-- Answer: null.
CREATE OR REPLACE FUNCTION store_unwritten_mail(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  new_id uuid;
  -- Whether the first one is written already, and waits to be sent.
  first_is_written boolean;
BEGIN
  -- As in store-mail.sql.
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
  IF EXISTS (SELECT FROM erased_customer WHERE crm_id = request ->> 'crmId' AND customer_id = (request ->> 'customerId')::uuid) THEN RETURN NULL; END IF;
  IF provider_is_erased(request ->> 'crmId', (request ->> 'providerId')::uuid) THEN RETURN NULL; END IF;

  INSERT INTO unwritten_mail (crm_id, event_id, about_id, version, template, customer_id, provider_id, actor, calendar_method, request_id, traceparent, previous_event_id, starts_at,
    requested_starts_at, expires_at)
  VALUES (
    request ->> 'crmId', (request ->> 'eventId')::uuid, (request ->> 'aboutId')::uuid, (request ->> 'version')::int, request ->> 'template',
    (request ->> 'customerId')::uuid, (request ->> 'providerId')::uuid, request ->> 'actor', request ->> 'calendarMethod', request ->> 'requestId', request ->> 'traceparent',
    (request ->> 'previousEventId')::uuid, (request ->> 'startsAt')::timestamptz,
    (request ->> 'requestedStartsAt')::timestamptz, (request ->> 'expiresAt')::timestamptz)
  ON CONFLICT ON CONSTRAINT unwritten_mail_intent_key DO NOTHING
  RETURNING id INTO new_id;
  IF new_id IS NULL THEN RETURN NULL; END IF;
  -- Only now: the insertion has waited for whoever was replacing the row of a repeated event by its mail, to which a second row would be something later.
  IF EXISTS (
    SELECT FROM mail
     WHERE crm_id = request ->> 'crmId' AND event_id = (request ->> 'eventId')::uuid AND about_id = (request ->> 'aboutId')::uuid AND template = request ->> 'template'
  ) THEN
    DELETE FROM unwritten_mail WHERE crm_id = request ->> 'crmId' AND id = new_id;
    RETURN NULL;
  END IF;

  first_is_written := EXISTS (
    SELECT FROM mail
     WHERE crm_id = request ->> 'crmId' AND about_id = (request ->> 'aboutId')::uuid AND state = 'pending' AND NOT request -> 'urgentTemplates' ? template
  );
  PERFORM supersede_unwritten_mails(request ->> 'crmId', ids) FROM (
    SELECT array_agg(id) AS ids FROM (
      SELECT id FROM unwritten_mail
       WHERE crm_id = request ->> 'crmId' AND lease IS NULL AND id IN (
         SELECT id FROM (
           SELECT id, row_number() OVER (ORDER BY version) AS place, row_number() OVER (ORDER BY version DESC) AS newest
             FROM unwritten_mail
            WHERE crm_id = request ->> 'crmId' AND about_id = (request ->> 'aboutId')::uuid AND NOT request -> 'urgentTemplates' ? template
         ) AS waiting
         WHERE (place > 1 OR first_is_written) AND newest >= (request ->> 'maxWaiting')::int
       )
         FOR UPDATE SKIP LOCKED
    ) AS locked
  ) AS superseded
  WHERE ids IS NOT NULL;
  RETURN NULL;
END
$$;
