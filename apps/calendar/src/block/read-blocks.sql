-- The blocks of a resource that overlap a period (interface 15), by start and id: as many as a part may have.
--
-- Request: crmId, providerId, resourceReference, from, to, rows, and if given after (startsAt and id: those after it).
-- Answer: a row for each.
CREATE OR REPLACE FUNCTION read_blocks(request jsonb)
RETURNS TABLE (id uuid, reference text, "resourceReference" text, "startsAt" timestamptz, "endsAt" timestamptz, note text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT id, reference, resource_reference, starts_at, ends_at, note
    FROM overlapping_blocks(
           request ->> 'crmId', (request ->> 'providerId')::uuid, request ->> 'resourceReference', (request ->> 'from')::timestamptz,
           (request ->> 'to')::timestamptz)
   WHERE (starts_at, id) > (
           coalesce((request #>> '{after,startsAt}')::timestamptz, '-infinity'),
           coalesce((request #>> '{after,id}')::uuid, '00000000-0000-0000-0000-000000000000'))
   ORDER BY starts_at, id
   LIMIT (request ->> 'rows')::integer;
END
$$;
