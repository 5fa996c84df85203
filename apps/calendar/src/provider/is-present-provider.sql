-- Whether the row of a provider still has the version by which the application has read the request: it determines the time zone.
--
-- Request: crmId, providerId, providerVersion (absent: any).
CREATE OR REPLACE FUNCTION is_present_provider(request jsonb) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM FROM provider
   WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'providerId')::uuid AND version = coalesce((request ->> 'providerVersion')::integer, version);
  RETURN FOUND;
END
$$;
