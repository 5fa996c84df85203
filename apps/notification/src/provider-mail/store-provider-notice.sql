-- Stores that a mail to a provider is to be written, unless that was stored or the mail written before, or the person it is about or the
-- provider was erased.
--
-- Request: crmId, eventId, recipient, template, aboutId, version, participationId, participationVersion, providerId, actor, requestId; customerId unless it says nothing of a person,
--   traceparent if it is traced, previousEventId if the mails about that event come first, requestedStartsAt, for when the request is of which it reminds.
-- Answer: null.
CREATE OR REPLACE FUNCTION store_provider_notice(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  stored_id uuid;
BEGIN
  IF request ? 'customerId' THEN
    -- As in store-mail.sql.
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
    IF EXISTS (SELECT FROM erased_customer WHERE crm_id = request ->> 'crmId' AND customer_id = (request ->> 'customerId')::uuid) THEN RETURN NULL; END IF;
  END IF;
  IF provider_is_erased(request ->> 'crmId', (request ->> 'providerId')::uuid) THEN RETURN NULL; END IF;
  INSERT INTO provider_notice AS known (crm_id, event_id, recipient, template, about_id, version, participation_ids, participation_version, customer_id, provider_id, actor, request_id, traceparent,
    previous_event_id, requested_starts_at)
  VALUES (
    request ->> 'crmId', (request ->> 'eventId')::uuid, request ->> 'recipient', request ->> 'template', (request ->> 'aboutId')::uuid, (request ->> 'version')::int,
    ARRAY[(request ->> 'participationId')::uuid], (request ->> 'participationVersion')::int, (request ->> 'customerId')::uuid, (request ->> 'providerId')::uuid, request ->> 'actor', request ->> 'requestId',
    request ->> 'traceparent', (request ->> 'previousEventId')::uuid, (request ->> 'requestedStartsAt')::timestamptz)
  -- Another participation of the appointment, if the first one is gone when the mail is written.
  ON CONFLICT ON CONSTRAINT provider_notice_intent_key DO UPDATE SET participation_ids = known.participation_ids || excluded.participation_ids
   WHERE cardinality(known.participation_ids) < 10 AND NOT known.participation_ids @> excluded.participation_ids
  RETURNING id INTO stored_id;
  -- Only now, as in store-unwritten-mail.sql.
  DELETE FROM provider_notice
   WHERE crm_id = request ->> 'crmId' AND id = stored_id AND EXISTS (
     SELECT FROM mail
      WHERE crm_id = request ->> 'crmId' AND event_id = (request ->> 'eventId')::uuid AND about_id = (request ->> 'aboutId')::uuid AND template = request ->> 'template');
  RETURN NULL;
END
$$;
