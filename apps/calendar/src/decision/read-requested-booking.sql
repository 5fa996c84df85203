-- A request as those see it who decide for its provider, with what decides whether a link to it works.
--
-- Request: crmId, participationId.
-- Answer: the fields of RequestedBookingRow in requested-booking.ts, times as text; null if there is no such participation, if it never was a request or a booking,
--   was deleted or anonymised, or if its appointment ended more than 30 days ago.
CREATE OR REPLACE FUNCTION read_requested_booking(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'participationId', participation.id, 'state', participation.state, 'customerId', participation.customer_id,
        'name', participation.name, 'email', participation.email, 'mobile', participation.mobile, 'note', participation.note,
        'message', (
          SELECT text FROM participation_message AS message
           WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id AND message.version = 1),
        'providerId', provider.id, 'providerReference', provider.reference, 'timeZone', provider.time_zone, 'appointmentReference', appointment.reference,
        'description', appointment.description, 'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at, 'address', appointment.address,
        'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'capacity', appointment.capacity,
        'taken', appointment.taken - (
          SELECT count(*) FROM participation AS hold
           WHERE hold.crm_id = appointment.crm_id AND hold.appointment_id = appointment.id AND hold.reserved_until <= present),
        'others', (
          SELECT count(*) FROM participation AS other
           WHERE other.crm_id = participation.crm_id AND other.appointment_id = appointment.id AND other.state = 'REQUESTED' AND other.id <> participation.id),
        'now', present, 'shown', shown_of(appointment), 'confirmed', decision.confirmed, 'decidedBy', decision.recipient_id, 'decidedAt', decision.decided_at)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      JOIN provider ON provider.crm_id = appointment.crm_id AND provider.id = appointment.provider_id
      LEFT JOIN participation_decision AS decision ON decision.crm_id = participation.crm_id AND decision.participation_id = participation.id
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND participation.state IN ('REQUESTED', 'BOOKED', 'CANCELED')
       -- Nobody knows whose an anonymised one was.
       AND (participation.customer_id IS NOT NULL OR participation.name IS NOT NULL)
       AND appointment.ends_at + interval '720 hours' > present);
END
$$;

-- Identifies what an appointment says to whoever decides about a request for it.
CREATE OR REPLACE FUNCTION shown_of(appointment appointment) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT md5(jsonb_build_array(
    appointment.id, extract(epoch FROM appointment.starts_at), extract(epoch FROM appointment.ends_at), appointment.description, appointment.address, appointment.price_value,
    appointment.price_currency)::text)
$$;
