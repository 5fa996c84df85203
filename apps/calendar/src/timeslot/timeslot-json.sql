-- A timeslot as the REST interface shows it (interface 2.4), without white space and without its appointments.
--
-- Postgres writes the body in place of a call (`FROM timeslot, timeslot_json(timeslot)`), because it is a single SELECT, STABLE and not STRICT.
CREATE OR REPLACE FUNCTION timeslot_json(timeslot timeslot) RETURNS TABLE (content text) LANGUAGE sql STABLE AS $$
  SELECT row_to_json(fields)::text FROM (
    SELECT
      timeslot.reference,
      timeslot.resource_reference AS "resourceReference",
      moment_json(timeslot.starts_at) AS start,
      moment_json(timeslot.ends_at) AS "end",
      timeslot.raster,
      timeslot.default_capacity AS "defaultCapacity",
      timeslot.default_accept_bookings AS "defaultAcceptBookings",
      (SELECT location_json.content FROM location_json(timeslot.address)) AS address,
      timeslot.buffer_before AS "bufferBefore",
      timeslot.buffer_after AS "bufferAfter",
      timeslot.state,
      timeslot.from_hours IN ('MADE', 'HIDDEN') IS TRUE AS "fromHours"
  ) AS fields
$$;
