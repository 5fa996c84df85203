-- A slot as the REST interface shows it (interface 10.1), without white space and without what writeSlot adds: its times and its timeslot. Postgres writes the body in place
-- of a call in FROM.
CREATE OR REPLACE FUNCTION slot_details(
  resource_reference text, appointment_reference text, product_reference text, description text, capacity bigint, seats bigint, address jsonb,
  price_value numeric, price_currency text)
RETURNS TABLE (content json) LANGUAGE sql STABLE AS $$
  SELECT row_to_json(fields) FROM (
    SELECT
      resource_reference AS "resourceReference",
      appointment_reference AS "appointmentReference",
      product_reference AS "productReference",
      description,
      capacity,
      seats,
      (SELECT location_json.content FROM location_json(slot_details.address)) AS address,
      (SELECT price_json.content FROM price_json(price_value, price_currency)) AS price
  ) AS fields
$$;

-- Those of an appointment in which `taken` seats are taken. More may be taken than there are: with ignoreCapacity, or before the capacity was reduced.
CREATE OR REPLACE FUNCTION appointment_slot_details(appointment appointment, taken bigint) RETURNS TABLE (content json) LANGUAGE sql STABLE AS $$
  SELECT content FROM slot_details(
    appointment.resource_reference, appointment.reference, appointment.product_reference, appointment.description, appointment.capacity,
    greatest(0, appointment.capacity - taken), appointment.address, appointment.price_value, appointment.price_currency)
$$;

-- The slot of a booking, in the timeslot in which it was requested, if any: what writeSlot needs.
CREATE OR REPLACE FUNCTION slot_of(appointment appointment, taken bigint, timeslot_reference text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN jsonb_build_object(
    'startsAt', epoch_ms(appointment.starts_at), 'endsAt', epoch_ms(appointment.ends_at), 'timeslotReference', timeslot_reference,
    'details', (SELECT content::text FROM appointment_slot_details(appointment, taken)));
END
$$;
