-- One appointment.
--
-- Request: crmId, providerId, providerVersion, reference, archiveAfterDays.
-- Answer: one row, whose `appointment` is an object of the REST interface (2.5), or null if there is none; no row if the provider's row has another version.
CREATE OR REPLACE FUNCTION read_appointment(request jsonb) RETURNS TABLE (appointment text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  present timestamptz := scheduling_now(the_crm);
BEGIN
  RETURN QUERY
  SELECT (
      SELECT content FROM appointment AS wanted, appointment_json(wanted, present, (request ->> 'archiveAfterDays')::integer)
       WHERE wanted.crm_id = the_crm AND wanted.provider_id = the_provider AND wanted.reference = request ->> 'reference'
         AND (wanted.when_empty IS NULL OR NOT (SELECT ended FROM ended(wanted, present))))
    FROM provider
   WHERE crm_id = the_crm AND id = the_provider AND version = (request ->> 'providerVersion')::integer;
END
$$;
