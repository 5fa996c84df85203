-- Reads a customer, by its id or its references. As a function, because reads that wait at the same moment then share a statement, which is planned once
-- per connection.
--
-- Request: crmId and id, or crmId, providerReference and customerReference; withProvisional (absent: false).
-- Answer: the columns in camelCase, without the times of its changes; null if there is none. A provisional customer is none, or the provisionalId withProvisional.
CREATE OR REPLACE FUNCTION get_customer(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  person customer%ROWTYPE;
BEGIN
  IF request ? 'id' THEN
    SELECT * INTO person FROM customer WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid;
  ELSE
    SELECT * INTO person FROM customer
     WHERE crm_id = request ->> 'crmId' AND provider_reference = request ->> 'providerReference' AND reference = request ->> 'customerReference';
  END IF;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF person.provisional_until IS NOT NULL THEN
    RETURN CASE WHEN (request ->> 'withProvisional')::boolean THEN jsonb_build_object('provisionalId', person.id) END;
  END IF;
  RETURN jsonb_build_object(
    'crmId', person.crm_id, 'id', person.id, 'providerId', person.provider_id, 'providerReference', person.provider_reference,
    'reference', person.reference, 'userName', person.user_name, 'email', person.email, 'mobile', person.mobile, 'note', person.note,
    'language', person.language, 'metadata', person.metadata, 'version', person.version);
END
$$;
