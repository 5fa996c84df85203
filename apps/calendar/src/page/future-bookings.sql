-- How many bookings and requests in the future a provider has of an e-mail address, in any of its forms: those of customers, and of participants who were embedded in an
-- appointment.
CREATE OR REPLACE FUNCTION future_bookings(the_crm text, the_provider uuid, the_address text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  the_key text := address_key(the_address);
  present timestamptz := scheduling_now(the_crm);
BEGIN
  RETURN (
    SELECT count(*)
      FROM (
        SELECT participation.appointment_id, participation.state
          FROM customer
          JOIN participation ON participation.crm_id = customer.crm_id AND participation.customer_id = customer.id
         WHERE customer.crm_id = the_crm AND customer.provider_id = the_provider AND customer.email IS NOT NULL AND address_key(customer.email) = the_key
         UNION ALL
        SELECT appointment_id, state FROM participation WHERE crm_id = the_crm AND email IS NOT NULL AND address_key(email) = the_key) AS own
      JOIN appointment ON appointment.crm_id = the_crm AND appointment.id = own.appointment_id
     WHERE own.state IN ('REQUESTED', 'BOOKED') AND appointment.provider_id = the_provider AND appointment.state = 'ACTIVE' AND appointment.starts_at > present);
END
$$;

-- The same for a mail: { crmId, providerId, email } -> the number.
CREATE OR REPLACE FUNCTION count_future_bookings(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN to_jsonb(future_bookings(request ->> 'crmId', (request ->> 'providerId')::uuid, request ->> 'email'));
END
$$;

-- How many bookings and requests were made on the page of a provider for an e-mail address within the last 24 hours of real time, whatever has become of them: each had a
-- mail to whoever has the address. The ids of participations are UUIDs of version 7.
CREATE OR REPLACE FUNCTION page_bookings_of_day(the_crm text, the_provider uuid, the_address text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  since CONSTANT timestamptz := clock_timestamp() - interval '24 hours';
BEGIN
  RETURN (
    SELECT count(*)
      FROM customer
      JOIN participation ON participation.crm_id = customer.crm_id AND participation.customer_id = customer.id
     WHERE customer.crm_id = the_crm AND customer.provider_id = the_provider AND customer.email IS NOT NULL
       AND address_key(customer.email) = address_key(the_address)
       AND participation.reference LIKE 'page-%' AND uuid_extract_timestamp(participation.id) > since);
END
$$;
