-- Whether a provider was deleted, so that nothing of it may be stored any more. The deletion (erase-provider.ts) takes the same lock, so what the transaction stores
-- after asking is either committed in time to be deleted, or not stored. Null is no provider.
CREATE OR REPLACE FUNCTION provider_is_erased(crm text, provider uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF provider IS NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('provider %s %s', crm, provider), 0));
  -- What the deletion has committed is visible to the next statement.
  RETURN EXISTS (SELECT FROM erased_provider WHERE crm_id = crm AND provider_id = provider);
END
$$;
