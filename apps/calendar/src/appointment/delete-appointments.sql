-- Deletes one appointment, or all of a series, with their participations; nobody is notified (interface 4.2).
--
-- Request: crmId, providerId, providerVersion, reference or seriesId, origin (see append-events.sql).
-- Answer: see answers.sql, with the id of the first appointment.
CREATE OR REPLACE FUNCTION delete_appointments(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  ids uuid[];
  target appointment%ROWTYPE;
  first_id uuid;
  freed bigint := 0;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  IF request ? 'seriesId' THEN
    ids := ARRAY(SELECT id FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND series_id = request ->> 'seriesId');
  ELSE
    ids := ARRAY(SELECT id FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'reference');
  END IF;
  -- In a fixed order, so that two transactions cannot deadlock.
  FOR target IN SELECT * FROM appointment WHERE crm_id = the_crm AND id = ANY (ids) ORDER BY id FOR UPDATE LOOP
    first_id := coalesce(first_id, target.id);
    freed := freed + target.taken;
    WITH removed AS (DELETE FROM participation WHERE crm_id = the_crm AND appointment_id = target.id RETURNING old AS before)
    SELECT target.event_count + count(append_participation_removed(before, target.provider_id, request -> 'origin', target.event_count + ordinal))
      INTO target.event_count
      FROM (SELECT *, row_number() OVER (ORDER BY (before).id)::integer AS ordinal FROM removed) AS removals;
    DELETE FROM appointment WHERE crm_id = the_crm AND id = target.id;
    PERFORM append_appointment_changed(target, 'DELETED', request -> 'origin');
  END LOOP;
  IF first_id IS NULL THEN RETURN error_answer(CASE WHEN request ? 'seriesId' THEN 'series.not_found' ELSE 'appointment.not_found' END); END IF;
  RETURN jsonb_build_object('id', first_id, 'created', false, 'seats', -freed);
END
$$;
