-- A participation of a provider.
--
-- Request: crmId, and either participationId, or providerId and reference.
-- Answer: id, appointmentReference, and participation, its text (participation-json.sql); null if there is none, or if it is an expired reservation.
CREATE OR REPLACE FUNCTION read_participation(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
  stored participation%ROWTYPE;
BEGIN
  IF request ? 'participationId' THEN
    SELECT * INTO stored FROM participation WHERE crm_id = the_crm AND id = (request ->> 'participationId')::uuid;
  ELSE
    SELECT * INTO stored FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference';
  END IF;
  IF stored.reserved_until <= present THEN RETURN NULL; END IF;
  RETURN (
    SELECT jsonb_build_object('id', stored.id, 'appointmentReference', reference, 'participation', participation_text(the_crm, stored.id))
      FROM appointment
     WHERE crm_id = the_crm AND id = stored.appointment_id AND provider_id = coalesce((request ->> 'providerId')::uuid, provider_id));
END
$$;
