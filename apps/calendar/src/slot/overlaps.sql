-- The appointments, timeslots and blocks that overlap a period. What is at most 24 hours long is found by its start, and what is longer by an index of its own,
-- so that the past is not read. Inlined into queries, because each is a single SELECT, STABLE and not STRICT.

-- The appointments of a resource that are not cancelled, those among them that are abandoned (see occupancy.sql) as well.
CREATE OR REPLACE FUNCTION overlapping_appointments(the_crm text, the_provider uuid, the_resource text, period_start timestamptz, period_end timestamptz)
RETURNS SETOF appointment LANGUAGE sql STABLE AS $$
  SELECT * FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start AND state = 'ACTIVE'
     AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start AND state = 'ACTIVE'
     AND ends_at - starts_at > interval '24 hours'
$$;

-- The bookable timeslots of a resource.
CREATE OR REPLACE FUNCTION overlapping_timeslots(the_crm text, the_provider uuid, the_resource text, period_start timestamptz, period_end timestamptz)
RETURNS SETOF timeslot LANGUAGE sql STABLE AS $$
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE'
     AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE'
     AND ends_at - starts_at > interval '24 hours'
$$;

-- What keeps a place with buffers (in minutes) from being free, or offers places that would: what overlaps the place together with its buffers, and what overlaps it
-- together with buffers of its own. Between two appointments there is the larger of the buffer after the earlier and the buffer before the later. No buffer is longer than
-- 24 hours. What only buffers of its own bring near is found by indexes of what has any.

-- The appointments of a resource that are not cancelled.
CREATE OR REPLACE FUNCTION near_appointments(
  the_crm text, the_provider uuid, the_resource text, period_start timestamptz, period_end timestamptz, before integer, after integer)
RETURNS SETOF appointment LANGUAGE sql STABLE AS $$
  SELECT * FROM overlapping_appointments(
    the_crm, the_provider, the_resource, period_start - make_interval(mins => before), period_end + make_interval(mins => after))
   UNION ALL
  SELECT * FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND state = 'ACTIVE'
     AND (buffer_before > 0 OR buffer_after > 0)
     AND starts_at - make_interval(mins => buffer_before) < period_end AND ends_at + make_interval(mins => buffer_after) > period_start
     AND NOT (starts_at < period_end + make_interval(mins => after) AND ends_at > period_start - make_interval(mins => before))
     AND starts_at > period_start - interval '48 hours' AND starts_at < period_end + interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND state = 'ACTIVE'
     AND (buffer_before > 0 OR buffer_after > 0)
     AND starts_at - make_interval(mins => buffer_before) < period_end AND ends_at + make_interval(mins => buffer_after) > period_start
     AND NOT (starts_at < period_end + make_interval(mins => after) AND ends_at > period_start - make_interval(mins => before))
     AND ends_at > period_start - interval '24 hours' AND ends_at - starts_at > interval '24 hours'
$$;

-- The bookable timeslots of a resource.
CREATE OR REPLACE FUNCTION near_timeslots(
  the_crm text, the_provider uuid, the_resource text, period_start timestamptz, period_end timestamptz, before integer, after integer)
RETURNS SETOF timeslot LANGUAGE sql STABLE AS $$
  SELECT * FROM overlapping_timeslots(
    the_crm, the_provider, the_resource, period_start - make_interval(mins => before), period_end + make_interval(mins => after))
   UNION ALL
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND state = 'BOOKABLE'
     AND (buffer_before > 0 OR buffer_after > 0)
     AND starts_at - make_interval(mins => buffer_before) < period_end AND ends_at + make_interval(mins => buffer_after) > period_start
     AND NOT (starts_at < period_end + make_interval(mins => after) AND ends_at > period_start - make_interval(mins => before))
     AND starts_at > period_start - interval '48 hours' AND starts_at < period_end + interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND state = 'BOOKABLE'
     AND (buffer_before > 0 OR buffer_after > 0)
     AND starts_at - make_interval(mins => buffer_before) < period_end AND ends_at + make_interval(mins => buffer_after) > period_start
     AND NOT (starts_at < period_end + make_interval(mins => after) AND ends_at > period_start - make_interval(mins => before))
     AND ends_at > period_start - interval '24 hours' AND ends_at - starts_at > interval '24 hours'
$$;

-- The blocks of a resource.
CREATE OR REPLACE FUNCTION overlapping_blocks(the_crm text, the_provider uuid, the_resource text, period_start timestamptz, period_end timestamptz)
RETURNS SETOF resource_block LANGUAGE sql STABLE AS $$
  SELECT * FROM resource_block
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start
     AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM resource_block
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start
     AND ends_at - starts_at > interval '24 hours'
$$;

-- The bookable timeslots with a capacity, of a resource or of all: the first max_rows by start and id are among those that are returned. However many
-- overlap the period, of the short ones no more are read. OFFSET 0: the long ones are not looked for in the order of their starts, which would read the past.
-- Two of the four parts have nothing to read: which index is best depends on whether a resource is given.
CREATE OR REPLACE FUNCTION first_timeslots(
  the_crm text, the_provider uuid, the_resource text, period_start timestamptz, period_end timestamptz, max_rows integer)
RETURNS TABLE (id uuid, starts_at timestamptz) LANGUAGE sql STABLE AS $$
  (SELECT id, starts_at FROM timeslot
    WHERE the_resource IS NULL AND crm_id = the_crm AND provider_id = the_provider
      AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE' AND default_capacity >= 1
      AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
    ORDER BY starts_at, id LIMIT max_rows)
   UNION ALL
  (SELECT id, starts_at FROM timeslot
    WHERE the_resource IS NULL AND crm_id = the_crm AND provider_id = the_provider
      AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE' AND default_capacity >= 1
      AND ends_at - starts_at > interval '24 hours'
   OFFSET 0)
   UNION ALL
  (SELECT id, starts_at FROM timeslot
    WHERE the_resource IS NOT NULL AND crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
      AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE' AND default_capacity >= 1
      AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
    ORDER BY starts_at, id LIMIT max_rows)
   UNION ALL
  (SELECT id, starts_at FROM timeslot
    WHERE the_resource IS NOT NULL AND crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
      AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE' AND default_capacity >= 1
      AND ends_at - starts_at > interval '24 hours'
   OFFSET 0)
$$;
