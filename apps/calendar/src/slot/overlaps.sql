-- The appointments and timeslots that overlap a period. What is at most 24 hours long is found by its start, and what is longer by an index of its own,
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

-- The same of all resources.
CREATE OR REPLACE FUNCTION provider_timeslots(the_crm text, the_provider uuid, period_start timestamptz, period_end timestamptz)
RETURNS SETOF timeslot LANGUAGE sql STABLE AS $$
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE'
     AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE'
     AND ends_at - starts_at > interval '24 hours'
$$;
