-- Calls another function once per `Idempotency-Key` of a CRM, in one round trip. The key is written in the same transaction if the function has done its work. It is
-- locked until the end of the transaction; waiting for the lock would delay the calls that share it.
--
-- Request: crmId, name and request (of the function, which answers with the id of the resource and with created if it has done its work), keyHash and fingerprint
--   in hex, lifetime (of a key, such as 72 hours).
-- Answer: key, which is new, used, reused (with different content) or in_flight; for new also answer, that of the function; for used also resourceIds and created.
CREATE OR REPLACE FUNCTION call_once(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_key bytea := decode(request ->> 'keyHash', 'hex');
  the_fingerprint bytea := decode(request ->> 'fingerprint', 'hex');
  kept idempotency_key%ROWTYPE;
  answer jsonb;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended((request ->> 'keyHash') || ' ' || the_crm, 0)) THEN RETURN jsonb_build_object('key', 'in_flight'); END IF;

  SELECT * INTO kept FROM idempotency_key
   WHERE crm_id = the_crm AND key_hash = the_key AND created_at > now() - (request ->> 'lifetime')::interval;
  IF kept.fingerprint <> the_fingerprint THEN RETURN jsonb_build_object('key', 'reused'); END IF;
  IF kept.fingerprint = the_fingerprint THEN
    RETURN jsonb_build_object('key', 'used', 'resourceIds', kept.resource_ids, 'created', kept.created);
  END IF;

  EXECUTE format('SELECT %I($1)', request ->> 'name') INTO answer USING request -> 'request';
  IF answer ->> 'id' IS NOT NULL THEN
    INSERT INTO idempotency_key (crm_id, key_hash, fingerprint, resource_ids, created)
    VALUES (the_crm, the_key, the_fingerprint, ARRAY[(answer ->> 'id')::uuid], (answer ->> 'created')::boolean)
    ON CONFLICT (crm_id, key_hash) DO UPDATE
       SET fingerprint = excluded.fingerprint, resource_ids = excluded.resource_ids, created = excluded.created, created_at = excluded.created_at;
  END IF;
  RETURN jsonb_build_object('key', 'new', 'answer', answer);
END
$$;
