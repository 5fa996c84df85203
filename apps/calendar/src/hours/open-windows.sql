-- Makes the timeslots of windows that are missing, and shows those again that have been hidden. The caller has locked the hours of the resources, so nobody else makes or
-- hides any. One that the CRM has changed is left alone, and not made a second time.
--
-- Openings: an array of the windows on their days: startsAt, endsAt, raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore, bufferAfter, digest
--   (of all of these, in hex).
-- Answer: how many were made.
CREATE OR REPLACE FUNCTION open_windows(the_crm text, the_provider uuid, resources text[], openings jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  hidden uuid[];
  made bigint;
BEGIN
  hidden := ARRAY(
    SELECT id FROM timeslot
     WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources) AND from_hours = 'HIDDEN'
       AND content_digest IN (SELECT decode(opening ->> 'digest', 'hex') FROM jsonb_array_elements(openings) AS opening));
  PERFORM FROM timeslot WHERE crm_id = the_crm AND id = ANY (hidden) ORDER BY id FOR UPDATE;
  -- The CRM may have changed one meanwhile.
  UPDATE timeslot SET state = 'BOOKABLE', from_hours = 'MADE' WHERE crm_id = the_crm AND id = ANY (hidden) AND from_hours = 'HIDDEN';

  INSERT INTO timeslot (
    crm_id, provider_id, reference, resource_reference, starts_at, ends_at, raster, default_capacity, default_accept_bookings, address, buffer_before, buffer_after, state,
    content_digest, from_hours)
  SELECT the_crm, the_provider, uuidv7()::text || '@hours', resource, "startsAt", "endsAt", raster, "defaultCapacity", "defaultAcceptBookings", address,
         -- Until the end of a rollout, another replica may know no buffers.
         coalesce("bufferBefore", 0), coalesce("bufferAfter", 0), 'BOOKABLE', decode(digest, 'hex'), 'MADE'
    FROM unnest(resources) AS resource
   CROSS JOIN jsonb_to_recordset(openings) AS opening (
           "startsAt" timestamptz, "endsAt" timestamptz, raster bigint, "defaultCapacity" bigint, "defaultAcceptBookings" boolean, address jsonb, "bufferBefore" integer,
           "bufferAfter" integer, digest text)
  ON CONFLICT (crm_id, provider_id, resource_reference, content_digest) WHERE from_hours IS NOT NULL DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END
$$;
