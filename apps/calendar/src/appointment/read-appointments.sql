-- A part of a provider's appointments, active and cancelled, by start and id.
--
-- Request: crmId, providerId, providerVersion (absent: any), archiveAfterDays, includeArchived, size and participations (how many of both the part may have), and if
--   given productReference, resourceReference, state, metadata, from, to, and after (startsAt and id of the appointment after which the part begins).
-- Answer: up to one row more than `size`. No row: the provider's row has another version. A row without anything: there are no appointments.
--   id, startsAt
--   appointment  as an object of the REST interface (2.5); null if it is only known to follow: those whose participations would be too many, unless it
--                is the first, and the one after `size`
CREATE OR REPLACE FUNCTION read_appointments(request jsonb) RETURNS TABLE (id uuid, "startsAt" timestamptz, appointment text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_size integer := request ->> 'size';
  max_participations integer := request ->> 'participations';
  present timestamptz := scheduling_now(the_crm);
  archive_after_days integer := request ->> 'archiveAfterDays';
  appointment_ids uuid[];
  max_few CONSTANT integer := 2000;
  -- Those with the metadata, if they are few.
  few_ids uuid[];
BEGIN
  IF NOT is_present_provider(request) THEN RETURN; END IF;

  IF request ? 'metadata' THEN
    -- They are in no order, so each part reads all of them, unless they are many: then reading all appointments in their order finds some soon.
    EXECUTE
      'SELECT ARRAY(
         SELECT id FROM appointment
          WHERE metadata IS NOT NULL AND jsonb_set(''{}'', ARRAY[provider_id::text], metadata) @> $1
          LIMIT $2)'
      INTO few_ids
      USING jsonb_build_object(the_provider, request -> 'metadata'), max_few + 1;
    IF cardinality(few_ids) > max_few THEN few_ids := NULL; END IF;
  END IF;

  -- Planned for these values: which index is best depends on them.
  EXECUTE concat(
    'SELECT ARRAY(
       SELECT id
         FROM appointment
        WHERE crm_id = $1 AND provider_id = $2 AND starts_at < $3 AND ends_at > $4 AND (starts_at, id) > ($5, $6)
          AND (when_empty IS NULL OR NOT (SELECT ended FROM ended(appointment, $11)))',
    CASE WHEN request ? 'productReference' THEN ' AND product_reference = $7' END,
    CASE WHEN request ? 'resourceReference' THEN ' AND resource_reference = $8' END,
    CASE WHEN request ? 'state' THEN ' AND state = $9' END,
    CASE WHEN request ? 'metadata' THEN ' AND metadata @> $12' END,
    CASE WHEN few_ids IS NOT NULL THEN ' AND id = ANY ($13)' END,
    ' ORDER BY starts_at, id
        LIMIT $10)')
    INTO appointment_ids
    USING the_crm, the_provider,
      coalesce((request ->> 'to')::timestamptz, 'infinity'),
      greatest((request ->> 'from')::timestamptz, CASE WHEN (request ->> 'includeArchived')::boolean THEN '-infinity' ELSE archived_until(present, archive_after_days) END),
      coalesce((request #>> '{after,startsAt}')::timestamptz, '-infinity'),
      coalesce(request #>> '{after,id}', '00000000-0000-0000-0000-000000000000')::uuid,
      request ->> 'productReference', request ->> 'resourceReference', request ->> 'state', max_size + 1, present,
      request -> 'metadata', few_ids;

  RETURN QUERY
  SELECT appointment.id, appointment.starts_at, CASE WHEN fits THEN (SELECT content FROM appointment_json(appointment, present, archive_after_days)) END
    FROM (
      SELECT counted.id, number, number = 1 OR number <= max_size AND sum(participations) OVER (ORDER BY number) <= max_participations AS fits
        FROM (
          SELECT listed.id, number, (
              SELECT count(*) FROM (
                SELECT FROM participation
                 WHERE participation.crm_id = the_crm AND participation.appointment_id = listed.id
                 LIMIT max_participations + 1) AS each) AS participations
            FROM unnest(appointment_ids) WITH ORDINALITY AS listed (id, number)) AS counted) AS summed
    JOIN appointment ON appointment.crm_id = the_crm AND appointment.id = summed.id
   ORDER BY number;
  IF NOT FOUND THEN RETURN NEXT; END IF;
END
$$;
