-- Stores the copy of a customer. A newer copy replaces an older one, never the reverse, none from before the required version is stored, and none after an erasure.
--
-- Request: crmId, id, providerId, reference, userName, version, and if they are known: email, mobile, language.
-- Answer: version: the later of the stored and the required version; what the customer service answers with an earlier one is out of date. erased: whether the
--   customer has been erased.
CREATE OR REPLACE FUNCTION store_customer(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  answer jsonb;
BEGIN
  INSERT INTO customer AS copy (crm_id, id, provider_id, reference, user_name, email, mobile, language, version, reference_known, refreshed_at)
  VALUES (
    request ->> 'crmId', (request ->> 'id')::uuid, (request ->> 'providerId')::uuid, request ->> 'reference', request ->> 'userName', request ->> 'email',
    request ->> 'mobile', request ->> 'language', (request ->> 'version')::integer, true, clock_timestamp())
  ON CONFLICT (crm_id, id) DO UPDATE
     SET (provider_id, reference, user_name, email, mobile, language, version, reference_known, refreshed_at)
       = (excluded.provider_id, excluded.reference, excluded.user_name, excluded.email, excluded.mobile, excluded.language, excluded.version, true, excluded.refreshed_at)
   WHERE copy.version <= excluded.version AND copy.required_version <= excluded.version AND copy.erased_at IS NULL;
  SELECT jsonb_build_object('version', greatest(version, required_version), 'erased', erased_at IS NOT NULL) INTO answer
    FROM customer
   WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid;
  RETURN answer;
END
$$;
