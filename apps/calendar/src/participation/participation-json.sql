-- A participation as the REST interface shows it (interface 2.6), without white space but in its metadata. All columns of `customer` are null if there is none.
--
-- Postgres writes the body in place of a call (`FROM participation, …, participation_json(participation, …)`), because it is a single SELECT, STABLE and not STRICT.
CREATE OR REPLACE FUNCTION participation_json(participation participation, appointment_reference text, customer customer)
RETURNS TABLE (content json) LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN num_nonnulls(participation.reserved_until, participation.attendance_confirmed_at) = 0 THEN written.content
      -- Only a reservation has a time at which it expires, and only who said so a time at which they did.
      ELSE concat(
        left(written.content::text, -1), ',"expiresAt":"' || moment_json(participation.reserved_until) || '"',
        ',"attendanceConfirmedAt":"' || moment_json(participation.attendance_confirmed_at) || '"', '}')::json END
    FROM (
      SELECT row_to_json(fields) AS content FROM (
        SELECT
          participation.reference,
          appointment_reference AS "appointmentReference",
          customer.reference AS "customerReference",
          coalesce(customer.email, participation.email) AS email,
          coalesce(customer.mobile, participation.mobile) AS mobile,
          coalesce(customer.user_name, participation.name, '') AS name,
          participation.note,
          participation.state,
          nullif(ARRAY(
            SELECT text FROM participation_message AS message
             WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id
             ORDER BY message.version), '{}') AS messages,
          participation.metadata,
          participation.no_show AS "noShow"
      ) AS fields) AS written
$$;

-- The same for the participation with this id; null if there is none.
CREATE OR REPLACE FUNCTION participation_text(the_crm text, the_participation uuid) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT content::text
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
    LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
   CROSS JOIN participation_json(participation, appointment.reference, customer)
   WHERE participation.crm_id = the_crm AND participation.id = the_participation
$$;
