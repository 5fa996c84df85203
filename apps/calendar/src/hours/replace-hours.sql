-- Sets or removes the hours of resources (interface 14), with the timeslots that are made from them, in one transaction. It is rolled back if the answer is not that
-- this is done.
--
-- The locks: the provider, so that its time zone stays, and the clock of a sandbox; the hours, by resource, which all that make timeslots lock; then all timeslots that are
-- removed, hidden or shown, by id, as a booking does (claim-place.sql). So a booking is in one of them before it is locked, or finds it as it is afterwards.
--
-- Request: crmId, providerId, providerVersion; resources; content, absent: no hours any more; revision, if only hours that have it are made anew; timeZone, madeFrom,
--   madeUntil and dueAt (see ResourceHoursTable); dayStart and dayEnd: the day, by the CRM's clock, for which all of this was calculated; kept, the digests of all
--   timeslots that the hours have; openings (see open-windows.sql), those among them that are made now; covered, when the resources are open, a multirange, and until:
--   which appointments are compared with it; aheadMs, the clock by which all of this was calculated; and maxTimeslots, if the resources may not have more before
--   (absent: any number).
-- Answer: retry (provider: its copy has another version; stale: it is another day, the clock was set, or the hours have another revision) or error (see answers.sql);
--   or made, how many timeslots; and the conflicts (see conflicts_of), by start.
CREATE OR REPLACE FUNCTION replace_hours(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  resources text[] := ARRAY(SELECT resource FROM jsonb_array_elements_text(request -> 'resources') AS resource ORDER BY resource);
  covered tstzmultirange := request ->> 'covered';
  present timestamptz;
  -- Timeslots that are hidden, and that the hours have again; those that they do not have any more; and those that the CRM has changed, and that stand for none of their
  -- windows any more.
  shown uuid[];
  unneeded uuid[];
  released uuid[];
  future bigint;
  made bigint;
BEGIN
  PERFORM FROM provider WHERE crm_id = the_crm AND id = the_provider FOR SHARE;
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('clock ' || the_crm, 0));
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  IF request ? 'revision' THEN
    UPDATE resource_hours
       SET revision = gen_random_uuid(), time_zone = request ->> 'timeZone', made_from = (request ->> 'madeFrom')::date, made_until = (request ->> 'madeUntil')::date,
           due_at = (request ->> 'dueAt')::timestamptz
     WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources) AND revision = (request ->> 'revision')::uuid;
    IF NOT FOUND THEN RETURN retry_answer('stale'); END IF;
  ELSE
    INSERT INTO resource_hours (crm_id, provider_id, resource_reference, content, revision, time_zone, made_from, made_until, due_at)
    SELECT the_crm, the_provider, resource, coalesce(request -> 'content', '{}'), gen_random_uuid(), request ->> 'timeZone', (request ->> 'madeFrom')::date,
           (request ->> 'madeUntil')::date, (request ->> 'dueAt')::timestamptz
      FROM unnest(resources) AS resource
    ON CONFLICT (crm_id, provider_id, resource_reference) DO UPDATE
       SET content = excluded.content, revision = excluded.revision, time_zone = excluded.time_zone, made_from = excluded.made_from, made_until = excluded.made_until,
           due_at = excluded.due_at;
    -- Even hours that do not exist had to be locked.
    IF NOT request ? 'content' THEN
      DELETE FROM resource_hours WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources);
    END IF;
  END IF;
  present := scheduling_now(the_crm);
  IF present < (request ->> 'dayStart')::timestamptz OR present >= (request ->> 'dayEnd')::timestamptz
     OR (request ->> 'aheadMs')::bigint <> coalesce((SELECT ahead_ms FROM sandbox_clock WHERE crm_id = the_crm), 0) THEN
    RETURN retry_answer('stale');
  END IF;

  -- No window is longer than that, so the past is not read.
  SELECT coalesce(array_agg(id) FILTER (WHERE is_kept AND from_hours = 'HIDDEN'), '{}'), coalesce(array_agg(id) FILTER (WHERE NOT is_kept), '{}'), count(*)
    INTO shown, unneeded, future
    FROM (
      SELECT id, from_hours, content_digest IN (SELECT decode(digest, 'hex') FROM jsonb_array_elements_text(request -> 'kept') AS digest) AS is_kept
        FROM timeslot
       WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources) AND starts_at > present - interval '48 hours'
         AND ends_at > present AND from_hours IN ('MADE', 'HIDDEN')
       LIMIT (request ->> 'maxTimeslots')::integer + 1) AS of_hours;
  IF future > (request ->> 'maxTimeslots')::integer THEN RETURN error_answer('hours.invalid'); END IF;
  released := ARRAY(
    SELECT id FROM timeslot
     WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources) AND from_hours = 'CHANGED'
       AND content_digest NOT IN (SELECT decode(digest, 'hex') FROM jsonb_array_elements_text(request -> 'kept') AS digest));
  PERFORM FROM timeslot WHERE crm_id = the_crm AND id = ANY (shown || unneeded || released) ORDER BY id FOR UPDATE;
  -- One that the CRM has changed meanwhile is left alone.
  UPDATE timeslot SET state = 'BOOKABLE', from_hours = 'MADE' WHERE crm_id = the_crm AND id = ANY (shown) AND from_hours = 'HIDDEN';
  DELETE FROM timeslot
   WHERE crm_id = the_crm AND id = ANY (unneeded) AND from_hours IN ('MADE', 'HIDDEN')
     -- As lock-timeslot.ts names them for a single one.
     AND NOT EXISTS (
       SELECT FROM appointment
        WHERE appointment.crm_id = the_crm AND appointment.provider_id = the_provider AND appointment.resource_reference = timeslot.resource_reference
          AND appointment.starts_at >= timeslot.starts_at AND appointment.starts_at < timeslot.ends_at AND appointment.ends_at <= timeslot.ends_at
          AND appointment.state = 'ACTIVE' AND (when_empty IS NULL OR NOT (SELECT abandoned FROM occupancy(appointment, present))));
  UPDATE timeslot SET state = 'CREATED', from_hours = 'HIDDEN' WHERE crm_id = the_crm AND id = ANY (unneeded) AND from_hours = 'MADE';
  UPDATE timeslot SET from_hours = NULL WHERE crm_id = the_crm AND id = ANY (released) AND from_hours = 'CHANGED';
  made := open_windows(the_crm, the_provider, resources, request -> 'openings');

  -- Of an appointment that has begun, only the rest counts.
  RETURN jsonb_build_object('made', made) || conflicts_of(ARRAY(
    SELECT reference
      FROM unnest(resources) AS resource
     CROSS JOIN overlapping_appointments(the_crm, the_provider, resource, present, (request ->> 'until')::timestamptz) AS appointment
     WHERE NOT covered @> tstzrange(greatest(starts_at, present), ends_at)
       AND (when_empty IS NULL OR NOT (SELECT abandoned FROM occupancy(appointment, present)))
     ORDER BY starts_at, id));
END
$$;
