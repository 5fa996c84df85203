-- A part of an answer with timeslots and their appointments, as many as it may have rows: a timeslot without appointments is a row, and so is each
-- participation, and each appointment without one, once per timeslot. A timeslot may have any number of appointments, and an appointment any number of
-- participations: only indexes are read to find out which ones there are, and no further than one row more than the part may have.
--
-- Request: crmId, providerId, providerVersion (absent: any), archiveAfterDays, and the fields of Continuation; without ids also resourceReference, from
--   and to.
-- Answer: a row for each pair of a timeslot and one of its appointments, in order, and for each timeslot without any. No row: the provider's row has
--   another version. A row without anything: there are no timeslots.
--   timeslotId, timeslotStartsAt, appointmentId, appointmentStartsAt
--   rowCount     how many rows of the part the pair is; null: it is only known to follow, and has no texts
--   timeslot     without its appointments, as an object of the REST interface (2.4); in the first row of a timeslot
--   appointment  as an object of the REST interface (2.5)
CREATE OR REPLACE FUNCTION read_timeslots(request jsonb) RETURNS TABLE (
  "timeslotId" uuid, "timeslotStartsAt" timestamptz, "appointmentId" uuid, "appointmentStartsAt" timestamptz, "rowCount" bigint, timeslot text, appointment text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_rows integer := request ->> 'rows';
  present timestamptz := scheduling_now(the_crm);
  archive_after_days integer := request ->> 'archiveAfterDays';
  lowest_id CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  highest_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  -- The timeslot with which the previous part ended, and the appointment, if the timeslot has more.
  last_start timestamptz := coalesce((request #>> '{timeslot,startsAt}')::timestamptz, '-infinity');
  last_id uuid := coalesce(request #>> '{timeslot,id}', request #>> '{ids,0}', lowest_id::text);
  last_appointment_start timestamptz := request #>> '{appointment,startsAt}';
  last_appointment_id uuid := request #>> '{appointment,id}';
  until_start timestamptz := coalesce((request #>> '{until,startsAt}')::timestamptz, 'infinity');
  until_id uuid := coalesce((request #>> '{until,id}')::uuid, highest_id);
  period_start timestamptz := request ->> 'from';
  period_end timestamptz := request ->> 'to';
  timeslot_ids uuid[];
BEGIN
  IF NOT is_present_provider(request) THEN RETURN; END IF;

  IF request ? 'ids' THEN
    timeslot_ids := ARRAY(
      SELECT timeslot.id
        FROM jsonb_array_elements_text(request -> 'ids') WITH ORDINALITY AS given (id, rank)
       -- One by one, whatever the plan assumes about the provider.
       CROSS JOIN LATERAL (SELECT id FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND id = given.id::uuid LIMIT 1) AS timeslot
       ORDER BY rank);
  ELSE
    -- One more than the part may have: each is at least one row.
    timeslot_ids := ARRAY(
      SELECT id
        FROM timeslot
       WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = request ->> 'resourceReference'
         AND starts_at < period_end AND ends_at > period_start
         AND (starts_at, id) >= (last_start, last_id) AND (id <> last_id OR last_appointment_id IS NOT NULL)
         AND (starts_at, id) <= (until_start, until_id)
       ORDER BY starts_at, id
       LIMIT max_rows + 1);
  END IF;

  RETURN QUERY
  WITH RECURSIVE
  -- Each step adds a timeslot while there is room. An appointment is in the array as often as it has rows. OFFSET 0 means that this is read only once.
  filled AS (
    SELECT 0 AS number, NULL::uuid AS timeslot_id, NULL::timestamptz AS timeslot_start, '{}'::uuid[] AS appointment_ids, 0 AS size, max_rows + 1 AS room
    UNION ALL
    SELECT filled.number + 1, timeslot.id, timeslot.starts_at, found.ids, cardinality(found.ids), filled.room - greatest(1, cardinality(found.ids))
      FROM filled
      JOIN timeslot ON timeslot.crm_id = the_crm AND timeslot.id = timeslot_ids[filled.number + 1],
      LATERAL (SELECT timeslot.id = last_id AND last_appointment_start >= timeslot.starts_at) AS begun (is_continued),
      LATERAL (SELECT ARRAY(
        SELECT appointment.id
          FROM appointment
          LEFT JOIN LATERAL (
            SELECT FROM participation
             WHERE participation.crm_id = the_crm AND participation.appointment_id = appointment.id
             LIMIT max_rows) AS counted ON true
         WHERE appointment.crm_id = the_crm AND appointment.provider_id = the_provider
           AND appointment.resource_reference = timeslot.resource_reference
           AND (appointment.starts_at, appointment.id) >
               (CASE WHEN is_continued THEN last_appointment_start ELSE timeslot.starts_at END, CASE WHEN is_continued THEN last_appointment_id ELSE lowest_id END)
           -- The first is implied by the second, but limits the part of the index that is read.
           AND appointment.starts_at < timeslot.ends_at AND appointment.ends_at <= timeslot.ends_at
           AND (appointment.when_empty IS NULL OR NOT (SELECT ended FROM ended(appointment, present)))
         ORDER BY appointment.starts_at, appointment.id
         LIMIT filled.room) OFFSET 0) AS found (ids)
     WHERE filled.room > 0),
  -- Without room, the last pair is one more than the part may have.
  pairs AS (
    SELECT number, timeslot_id, timeslot_start, listed.id AS appointment_id, coalesce(min(listed.rank), 1) AS rank,
        CASE WHEN room > 0 OR max(listed.rank) < size THEN count(*) END AS row_count
      FROM filled LEFT JOIN LATERAL unnest(appointment_ids) WITH ORDINALITY AS listed (id, rank) ON true
     WHERE number > 0
     GROUP BY number, timeslot_id, timeslot_start, size, room, listed.id)
  SELECT timeslot_id, timeslot_start, pairs.appointment_id, written.starts_at, row_count,
      CASE WHEN rank = 1 AND row_count IS NOT NULL THEN (
        SELECT content FROM timeslot, timeslot_json(timeslot)
         WHERE timeslot.crm_id = the_crm AND timeslot.id = timeslot_id) END,
      written.content
    FROM pairs
    LEFT JOIN LATERAL (
      SELECT appointment.starts_at, CASE WHEN row_count IS NOT NULL THEN (SELECT content FROM appointment_json(appointment, present, archive_after_days)) END AS content
        FROM appointment
       WHERE appointment.crm_id = the_crm AND appointment.id = pairs.appointment_id
      OFFSET 0) AS written ON true
   ORDER BY number, rank;
  IF NOT FOUND THEN RETURN NEXT; END IF;
END
$$;
