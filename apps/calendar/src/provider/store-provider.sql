-- Stores a copy of a provider: a newer one replaces an older one, never the reverse. Not one that is closed, because it is being deleted or was: with a later
-- version it is open again, with the booking rules that it had (ADR 43).
--
-- Request: crmId, id, reference, timeZone, version.
-- Answer: true; or false if it is closed.
CREATE OR REPLACE FUNCTION store_provider(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_id uuid := (request ->> 'id')::uuid;
  the_version integer := (request ->> 'version')::integer;
  kept_rules jsonb;
BEGIN
  UPDATE provider SET time_zone = request ->> 'timeZone', version = the_version WHERE crm_id = the_crm AND id = the_id AND version < the_version;
  PERFORM FROM provider WHERE crm_id = the_crm AND id = the_id;
  IF FOUND THEN RETURN to_jsonb(true); END IF;

  -- Nobody closes it meanwhile.
  PERFORM pg_advisory_xact_lock(hashtextextended('provider ' || the_id, 0));
  PERFORM FROM closed_provider WHERE crm_id = the_crm AND id = the_id AND version >= the_version;
  IF FOUND THEN RETURN to_jsonb(false); END IF;
  INSERT INTO provider (crm_id, id, reference, time_zone, version)
  VALUES (the_crm, the_id, request ->> 'reference', request ->> 'timeZone', the_version)
  ON CONFLICT DO NOTHING;
  DELETE FROM closed_provider WHERE crm_id = the_crm AND id = the_id RETURNING rules INTO kept_rules;
  IF kept_rules IS NOT NULL THEN INSERT INTO booking_rules SELECT * FROM jsonb_populate_record(NULL::booking_rules, kept_rules); END IF;
  RETURN to_jsonb(true);
END
$$;
