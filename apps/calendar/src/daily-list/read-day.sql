-- The appointments of a day, each with those who are booked or requested, as calendar knows them. Each row is found by itself (OFFSET 0), even where Postgres would
-- rather read all.
--
-- Request: crmId, providerId, dayStart, dayEnd; limit: how many participations there are at most, where an appointment without any counts as one.
-- Answer: the fields of Day in list-day.ts, times as text.
CREATE OR REPLACE FUNCTION read_day(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  the_crm text := request ->> 'crmId';
BEGIN
  RETURN (
    WITH place AS MATERIALIZED (
      SELECT appointment.id AS appointment_id, appointment.starts_at, participation.id AS participation_id, participation.state,
             row_number() OVER (ORDER BY appointment.starts_at, appointment.id, participation.id) AS number
        FROM day_appointments(the_crm, (request ->> 'providerId')::uuid, (request ->> 'dayStart')::timestamptz, (request ->> 'dayEnd')::timestamptz) AS appointment
        LEFT JOIN LATERAL (
          SELECT id, state FROM participation
           WHERE crm_id = the_crm AND appointment_id = appointment.id AND state IN ('BOOKED', 'REQUESTED') OFFSET 0) AS participation ON true
    ), listed AS (
      SELECT place.appointment_id, min(number) AS number,
             coalesce(jsonb_agg(jsonb_build_object(
               'participationId', participation.id, 'customerId', participation.customer_id, 'state', participation.state,
               'name', coalesce(customer.user_name, participation.name), 'email', coalesce(customer.email, participation.email),
               'mobile', coalesce(customer.mobile, participation.mobile)) ORDER BY number) FILTER (WHERE participation.id IS NOT NULL), '[]') AS participations
        FROM place
        LEFT JOIN LATERAL (SELECT * FROM participation WHERE crm_id = the_crm AND id = place.participation_id OFFSET 0) AS participation ON true
        LEFT JOIN LATERAL (SELECT * FROM customer WHERE crm_id = the_crm AND id = participation.customer_id OFFSET 0) AS customer ON true
       WHERE number <= (request ->> 'limit')::bigint
       GROUP BY place.appointment_id
    )
    SELECT jsonb_build_object(
        'appointments', (
          SELECT coalesce(jsonb_agg(jsonb_build_object(
              'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at, 'description', appointment.description, 'address', appointment.address,
              'participations', listed.participations) ORDER BY listed.number), '[]')
            FROM listed
           CROSS JOIN LATERAL (SELECT * FROM appointment WHERE crm_id = the_crm AND id = listed.appointment_id OFFSET 0) AS appointment),
        'booked', count(*) FILTER (WHERE state = 'BOOKED'),
        'requested', count(*) FILTER (WHERE state = 'REQUESTED'),
        'unlisted', greatest(0, count(*) - (request ->> 'limit')::bigint))
      FROM place);
END
$$;
