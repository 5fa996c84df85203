-- A participation as a response of the REST interface contains it (2.6): the same fields in the same order, without white space.
--
-- Postgres writes the body in place of a call (`FROM participation_json(participation.crm_id, …)`), because it is a single SELECT, STABLE and not STRICT. It
-- takes columns, not rows, which Postgres would copy.
CREATE OR REPLACE FUNCTION participation_json(
  crm_id text, id uuid, reference text, appointment_reference text, customer_reference text,
  email text, mobile text, name text, note text, state text, reserved_until timestamptz
) RETURNS TABLE (content json) LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN reserved_until IS NULL
      THEN (SELECT row_to_json(fields) FROM (
        SELECT reference, appointment_reference AS "appointmentReference", customer_reference AS "customerReference",
               email, mobile, name, note, state, messages) AS fields)
      -- Only a reservation has a time at which it expires.
      ELSE (SELECT row_to_json(fields) FROM (
        SELECT reference, appointment_reference AS "appointmentReference", customer_reference AS "customerReference",
               email, mobile, name, note, state, messages,
               to_char(reserved_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS "expiresAt") AS fields)
    END
    FROM (SELECT nullif(ARRAY(
            SELECT text FROM participation_message AS message
             WHERE message.crm_id = participation_json.crm_id AND message.participation_id = participation_json.id
             ORDER BY message.version), '{}') AS messages) AS texts
$$;

-- An appointment with its participations, as a response of the REST interface contains it (2.5 and 2.6): the same fields in the same order, without
-- white space. An expired reservation is hidden, whether or not its row still exists.
--
-- Postgres writes the body in place of a call (`FROM appointment, appointment_json(appointment, …)`), because it is a single SELECT, STABLE and not STRICT.
CREATE OR REPLACE FUNCTION appointment_json(appointment appointment, present timestamptz, archived_until timestamptz) RETURNS TABLE (content text) LANGUAGE sql STABLE AS $$
  SELECT (SELECT row_to_json(fields)::text FROM (
    SELECT
      appointment.reference,
      appointment.accept_bookings AS "acceptBookings",
      CASE jsonb_typeof(appointment.address)
        WHEN 'object' THEN (
          SELECT row_to_json(fields) FROM jsonb_to_record(appointment.address) AS fields (city text, "countryCode" text, street text, number text, zip text))
        ELSE appointment.address::json
      END AS address,
      appointment.ends_at <= archived_until AS archived,
      appointment.capacity,
      appointment.contact_reference AS "contactReference",
      appointment.description,
      to_char(appointment.starts_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS start,
      to_char(appointment.ends_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS "end",
      appointment.notes,
      array_to_json(ARRAY(
        SELECT participation_json.content
          FROM participation
          LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
         CROSS JOIN participation_json(
           participation.crm_id, participation.id, participation.reference, appointment.reference, customer.reference,
           coalesce(customer.email, participation.email), coalesce(customer.mobile, participation.mobile),
           coalesce(customer.user_name, participation.name, ''), participation.note, participation.state, participation.reserved_until)
         WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id
           AND (participation.reserved_until IS NULL OR participation.reserved_until > present)
         ORDER BY participation.id)) AS participations,
      CASE WHEN appointment.price_value IS NOT NULL THEN (
        SELECT row_to_json(fields) FROM (SELECT appointment.price_value AS value, appointment.price_currency AS currency) AS fields)
      END AS price,
      appointment.product_reference AS "productReference",
      appointment.resource_reference AS "resourceReference",
      appointment.series_id AS "seriesId",
      appointment.state
  ) AS fields)
$$;
