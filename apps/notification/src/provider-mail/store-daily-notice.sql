-- Stores that the list of a day is to be written, unless that was stored or the mail written before, or the provider was erased.
--
-- Request: crmId, eventId, aboutId, providerId, day, expiresAt, requestId; traceparent if it is traced.
-- Answer: null.
CREATE OR REPLACE FUNCTION store_daily_notice(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  IF provider_is_erased(request ->> 'crmId', (request ->> 'providerId')::uuid) THEN RETURN NULL; END IF;
  IF EXISTS (
    SELECT FROM mail
     WHERE crm_id = request ->> 'crmId' AND event_id = (request ->> 'eventId')::uuid AND about_id = (request ->> 'aboutId')::uuid AND template = 'provider-day'
  ) THEN RETURN NULL; END IF;

  INSERT INTO provider_notice (crm_id, event_id, recipient, template, about_id, version, provider_id, actor, day, expires_at, request_id, traceparent)
  VALUES (
    request ->> 'crmId', (request ->> 'eventId')::uuid, 'PROVIDER', 'provider-day', (request ->> 'aboutId')::uuid, 0, (request ->> 'providerId')::uuid, 'service',
    (request ->> 'day')::date, (request ->> 'expiresAt')::timestamptz, request ->> 'requestId', request ->> 'traceparent')
  ON CONFLICT ON CONSTRAINT provider_notice_intent_key DO NOTHING;
  RETURN NULL;
END
$$;
