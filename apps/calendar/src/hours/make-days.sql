-- Makes the timeslots of days that have come within reach, of resources of one CRM (interface 14).
--
-- Request: crmId; hours: of each resource providerId, resourceReference, the revision with which they were read, madeFrom, madeUntil and dueAt (see
--   ResourceHoursTable), as they become, and openings (see open-windows.sql). Others do not wait: what is locked is being set or made by somebody else. What has another
--   revision by now is left alone, too.
-- Answer: how many timeslots were made.
CREATE OR REPLACE FUNCTION make_days(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  hours jsonb;
  made bigint := 0;
BEGIN
  FOR hours IN SELECT jsonb_array_elements(request -> 'hours') LOOP
    PERFORM FROM resource_hours
     WHERE crm_id = the_crm AND provider_id = (hours ->> 'providerId')::uuid AND resource_reference = hours ->> 'resourceReference'
       AND revision = (hours ->> 'revision')::uuid
       FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    -- Another replica may have made the same days: its revision is another one.
    UPDATE resource_hours
       SET revision = gen_random_uuid(), made_from = (hours ->> 'madeFrom')::date, made_until = (hours ->> 'madeUntil')::date, due_at = (hours ->> 'dueAt')::timestamptz
     WHERE crm_id = the_crm AND provider_id = (hours ->> 'providerId')::uuid AND resource_reference = hours ->> 'resourceReference';
    made := made + open_windows(the_crm, (hours ->> 'providerId')::uuid, ARRAY[hours ->> 'resourceReference'], hours -> 'openings');
  END LOOP;
  RETURN to_jsonb(made);
END
$$;
