-- Creates a customer in one round trip with the event about it.
--
-- Request: crmId, id, providerId, providerReference, reference, userName, email, mobile, note, language, metadata (the last five may be null), event (a row of
--   the outbox).
-- Answer: the id of the customer that has the reference, and whether it was created; or provisionalId, if that one is provisional.
CREATE OR REPLACE FUNCTION create_customer(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  event jsonb := request -> 'event';
  other customer%ROWTYPE;
BEGIN
  LOOP
    INSERT INTO customer (crm_id, id, provider_id, provider_reference, reference, user_name, email, mobile, note, language, metadata)
    VALUES (
      request ->> 'crmId', (request ->> 'id')::uuid, (request ->> 'providerId')::uuid, request ->> 'providerReference', request ->> 'reference',
      request ->> 'userName', request ->> 'email', request ->> 'mobile', request ->> 'note', request ->> 'language',
      nullif(request -> 'metadata', 'null'))
    ON CONFLICT ON CONSTRAINT customer_reference_key DO NOTHING;
    EXIT WHEN FOUND;
    SELECT * INTO other FROM customer
     WHERE crm_id = request ->> 'crmId' AND provider_reference = request ->> 'providerReference' AND reference = request ->> 'reference';
    -- It may have been deleted since.
    CONTINUE WHEN NOT FOUND;
    IF other.provisional_until IS NOT NULL THEN RETURN jsonb_build_object('provisionalId', other.id); END IF;
    RETURN jsonb_build_object('id', other.id, 'created', false);
  END LOOP;

  INSERT INTO outbox (subject, data, request_id, traceparent)
  VALUES (event ->> 'subject', event -> 'data', event ->> 'request_id', event ->> 'traceparent');
  RETURN jsonb_build_object('id', request ->> 'id', 'created', true);
END
$$;
