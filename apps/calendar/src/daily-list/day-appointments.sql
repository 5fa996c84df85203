-- The appointments of a period that a provider is told of by the list of the day (interface 6.5). One that a booking made, and in which nobody is booked or requested,
-- is none: there is only a hold in it. With EXISTS, Postgres might read all participations.
CREATE OR REPLACE FUNCTION day_appointments(the_crm text, the_provider uuid, day_start timestamptz, day_end timestamptz) RETURNS SETOF appointment LANGUAGE sql STABLE AS $$
  SELECT *
    FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND starts_at >= day_start AND starts_at < day_end AND state = 'ACTIVE'
     AND (when_empty IS NULL OR (
       SELECT true FROM participation
        WHERE participation.crm_id = the_crm AND participation.appointment_id = appointment.id AND participation.state IN ('BOOKED', 'REQUESTED')
        LIMIT 1))
$$;
