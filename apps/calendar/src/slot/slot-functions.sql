-- What the list of slots and a booking have in common.

-- Whether a period is a step of a timeslot that can be booked: it begins on the raster, is a multiple of it, and lies in the timeslot.
CREATE OR REPLACE FUNCTION is_step(timeslot timeslot, period_start timestamptz, period_end timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT timeslot.state = 'BOOKABLE' AND timeslot.default_capacity >= 1
     AND period_start >= timeslot.starts_at AND period_end <= timeslot.ends_at AND period_end > period_start
     AND extract(epoch FROM period_start - timeslot.starts_at) % (timeslot.raster * 60) = 0
     AND extract(epoch FROM period_end - period_start) % (timeslot.raster * 60) = 0
$$;

-- Whether an appointment is what a request for a booking names: the appointment, or the step of the timeslot `opening` with the product.
CREATE OR REPLACE FUNCTION is_place(appointment appointment, opening timeslot, request jsonb) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT appointment.provider_id = (request ->> 'providerId')::uuid AND CASE
    WHEN request ? 'appointmentReference' THEN appointment.reference = request ->> 'appointmentReference'
    ELSE appointment.resource_reference = opening.resource_reference AND appointment.product_reference = request ->> 'productReference'
     AND appointment.starts_at = (request ->> 'startsAt')::timestamptz
     AND appointment.ends_at = appointment.starts_at + make_interval(mins => coalesce((request ->> 'minutes')::integer, opening.raster::integer)) END
$$;

-- The first and the last whole millisecond at which a slot may begin now, by the minimum notice and the horizon of the provider's booking rules
-- (interface 10.4). Days are 24 hours each.
CREATE OR REPLACE FUNCTION booking_bounds(the_crm text, the_provider uuid, present timestamptz, ignores_notice boolean)
RETURNS TABLE (earliest timestamptz, latest timestamptz) LANGUAGE sql STABLE AS $$
  SELECT date_trunc('milliseconds', present + interval '999 microseconds') + make_interval(mins => CASE WHEN ignores_notice THEN 0 ELSE coalesce(minimum_notice, 0) END),
         coalesce(date_trunc('milliseconds', present) + make_interval(hours => horizon * 24), 'infinity')
    FROM (VALUES (1)) AS one LEFT JOIN booking_rules ON crm_id = the_crm AND provider_id = the_provider
$$;

-- Epoch milliseconds. STABLE, as extract is, so that Postgres writes the body in place of a call.
CREATE OR REPLACE FUNCTION epoch_ms(moment timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (extract(epoch FROM moment) * 1000)::bigint
$$;

-- Which timeslots have in common when their places are occupied, as they are of one resource and their places have the same buffers. No reference has a control character.
CREATE OR REPLACE FUNCTION occupied_key(resource_reference text, buffer_before integer, buffer_after integer) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN buffer_before = 0 AND buffer_after = 0 THEN resource_reference ELSE concat(resource_reference, E'\n', buffer_before, E'\n', buffer_after) END
$$;
