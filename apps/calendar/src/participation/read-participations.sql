-- A part of a provider's participations, without expired reservations, by the start of the appointment, its id, and the participation's id: an order in
-- which a part can end at any participation, however many appointments start at the same moment.
--
-- Request: crmId, providerId, providerVersion (absent: any), size (how many the part may have), rows (how many participations, and appointments without
--   any, are read for it, whether or not they match; at least 2), and if given customerId, state, metadata, noShow, from and to (of the
--   appointment), changedSince, and after (the position after which the part begins).
-- Answer: one row for each, and one more if the part ended before the list. No row: the provider's row has another version. A row without anything: there
--   are none.
--   participation                             as an object of the REST interface (2.6); null if there only may be more after this position
--   startsAt, appointmentId, participationId  the position
CREATE OR REPLACE FUNCTION read_participations(request jsonb)
RETURNS TABLE (participation text, "startsAt" timestamptz, "appointmentId" uuid, "participationId" uuid)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_size integer := request ->> 'size';
  max_rows integer := request ->> 'rows';
  present timestamptz := scheduling_now(the_crm);
  lowest_id CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  wanted_metadata jsonb := request -> 'metadata';
  -- The candidates, if they are few.
  few_ids uuid[];
  row_count integer := 0;
  next record;
  last record;
  participation_ids uuid[] := '{}';
  has_more boolean := false;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN; END IF;

  IF request ? 'customerId' OR request ? 'metadata' THEN
    -- Those of a customer, and those with metadata, are in no order, so each part reads all of them, unless they are more than it may read.
    EXECUTE concat(
      'SELECT ARRAY(SELECT id FROM participation WHERE crm_id = $1',
      CASE WHEN request ? 'customerId' THEN ' AND customer_id = $2' END,
      CASE WHEN request ? 'metadata' THEN ' AND metadata IS NOT NULL AND jsonb_set(''{}'', ARRAY[crm_id], metadata) @> $3' END,
      ' LIMIT $4)')
      INTO few_ids
      USING the_crm, (request ->> 'customerId')::uuid, jsonb_build_object(the_crm, wanted_metadata), max_rows + 1;
    IF cardinality(few_ids) > max_rows THEN few_ids := NULL; END IF;
  END IF;

  -- Planned for these values: which index is best depends on them.
  FOR next IN EXECUTE concat(
    'SELECT appointment.starts_at, appointment.id AS appointment_id, participation.id,
            participation.id IS NOT NULL AND ($8 IS NULL OR participation.customer_id = $8) AND ($9 IS NULL OR participation.state = $9)
              AND ($14 IS NULL OR coalesce(participation.metadata @> $14, false)) AND ($15 IS NULL OR participation.no_show = $15)
              AND ($10 IS NULL OR participation.changed_at >= $10) AND (participation.reserved_until IS NULL OR participation.reserved_until > $11) AS is_listed
       FROM appointment',
    CASE WHEN few_ids IS NOT NULL THEN
      ' JOIN participation ON participation.crm_id = $1 AND participation.id = ANY ($16) AND participation.appointment_id = appointment.id
         AND (appointment.starts_at, appointment.id, participation.id) > ($5, $6, $7)'
    ELSE
      -- An appointment without any is a row, too, so that the rows limit how many appointments are read.
      ' LEFT JOIN LATERAL (
          SELECT * FROM participation
           WHERE crm_id = $1 AND appointment_id = appointment.id AND id > CASE WHEN appointment.id = $6 THEN $7 ELSE $12 END
           ORDER BY id
           LIMIT $13) AS participation ON true'
    END,
    ' WHERE appointment.crm_id = $1 AND appointment.provider_id = $2 AND appointment.starts_at < $3 AND appointment.ends_at > $4
        AND (appointment.starts_at, appointment.id) >= ($5, $6)
      ORDER BY appointment.starts_at, appointment.id, participation.id
      LIMIT $13')
    USING the_crm, the_provider,
      coalesce((request ->> 'to')::timestamptz, 'infinity'), coalesce((request ->> 'from')::timestamptz, '-infinity'),
      coalesce((request #>> '{after,startsAt}')::timestamptz, '-infinity'),
      coalesce((request #>> '{after,appointmentId}')::uuid, lowest_id), coalesce((request #>> '{after,participationId}')::uuid, lowest_id),
      (request ->> 'customerId')::uuid, request ->> 'state', (request ->> 'changedSince')::timestamptz, present, lowest_id, max_rows + 1,
      wanted_metadata, (request ->> 'noShow')::boolean, few_ids
  LOOP
    has_more := row_count = max_rows OR next.is_listed AND cardinality(participation_ids) = max_size;
    EXIT WHEN has_more;
    row_count := row_count + 1;
    last := next;
    IF next.is_listed THEN participation_ids := participation_ids || next.id; END IF;
  END LOOP;

  RETURN QUERY
  SELECT content::text, appointment.starts_at, appointment.id, participation.id
    FROM unnest(participation_ids) WITH ORDINALITY AS listed (id, number)
    JOIN participation ON participation.crm_id = the_crm AND participation.id = listed.id
    JOIN appointment ON appointment.crm_id = the_crm AND appointment.id = participation.appointment_id
    LEFT JOIN customer ON customer.crm_id = the_crm AND customer.id = participation.customer_id
   CROSS JOIN participation_json(participation, appointment.reference, customer)
   ORDER BY number;
  IF has_more THEN
    RETURN QUERY SELECT NULL, last.starts_at, last.appointment_id, coalesce(last.id, lowest_id);
  ELSIF cardinality(participation_ids) = 0 THEN
    RETURN NEXT;
  END IF;
END
$$;
