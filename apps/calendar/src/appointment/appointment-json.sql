-- Appointments that ended at this time or earlier are archived (interface 2.5). Hours, because the length of a day depends on the session's time zone.
CREATE OR REPLACE FUNCTION archived_until(present timestamptz, archive_after_days integer) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT present - make_interval(hours => archive_after_days * 24)
$$;

-- An appointment with its participations as the REST interface shows it (interface 2.5), without white space but in metadata. An expired reservation is hidden, whether or not its
-- row still exists.
--
-- Postgres writes the body in place of a call (`FROM appointment, appointment_json(appointment, …)`), because it is a single SELECT, STABLE and not STRICT.
CREATE OR REPLACE FUNCTION appointment_json(appointment appointment, present timestamptz, archive_after_days integer) RETURNS TABLE (content text) LANGUAGE sql STABLE AS $$
  SELECT (SELECT row_to_json(fields)::text FROM (
    SELECT
      appointment.reference,
      appointment.accept_bookings AS "acceptBookings",
      (SELECT content FROM location_json(appointment.address)) AS address,
      appointment.ends_at <= archived_until(present, archive_after_days) AS archived,
      appointment.capacity,
      appointment.contact_reference AS "contactReference",
      appointment.description,
      moment_json(appointment.starts_at) AS start,
      moment_json(appointment.ends_at) AS "end",
      appointment.notes,
      appointment.metadata,
      array_to_json(ARRAY(
        SELECT participation_json.content
          FROM participation
          LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
         CROSS JOIN participation_json(participation, appointment.reference, customer)
         WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id
           AND (participation.reserved_until IS NULL OR participation.reserved_until > present)
         ORDER BY participation.id)) AS participations,
      (SELECT content FROM price_json(appointment.price_value, appointment.price_currency)) AS price,
      appointment.product_reference AS "productReference",
      appointment.resource_reference AS "resourceReference",
      appointment.series_id AS "seriesId",
      appointment.state
  ) AS fields)
$$;

-- The texts of appointments (appointment_json), in the order of the ids.
--
-- Request: crmId, ids, archiveAfterDays.
CREATE OR REPLACE FUNCTION read_appointments_by_id(request jsonb) RETURNS TABLE (appointment text) LANGUAGE plpgsql STABLE AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
BEGIN
  RETURN QUERY
  SELECT content
    FROM jsonb_array_elements_text(request -> 'ids') WITH ORDINALITY AS wanted (id, number)
    JOIN appointment AS stored ON stored.crm_id = the_crm AND stored.id = wanted.id::uuid
   CROSS JOIN appointment_json(stored, present, (request ->> 'archiveAfterDays')::integer)
   ORDER BY number;
END
$$;
