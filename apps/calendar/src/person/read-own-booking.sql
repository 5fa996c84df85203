-- A booking as its person sees it, with what decides whether a link to it works.
--
-- Request: crmId, participationId.
-- Answer: the fields of OwnBookingRow in own-booking.ts, times as text; null if there is no such participation, if it is an expired reservation, was deleted or
--   anonymised, or ended more than 30 days ago.
CREATE OR REPLACE FUNCTION read_own_booking(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'participationId', participation.id, 'reference', participation.reference, 'version', participation.version, 'state', participation.state,
        'customerId', participation.customer_id, 'name', participation.name, 'email', participation.email,
        'reservedUntil', participation.reserved_until, 'attendanceConfirmedAt', participation.attendance_confirmed_at,
        'providerId', provider.id, 'providerReference', provider.reference, 'timeZone', provider.time_zone,
        'appointmentReference', appointment.reference, 'description', appointment.description, 'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at,
        'address', appointment.address, 'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'productReference', appointment.product_reference, 'resourceReference', appointment.resource_reference,
        'emptiedAppointmentId', CASE WHEN ends_without(participation.crm_id, appointment.id, participation.id) THEN appointment.id END,
        'now', present, 'cancellableUntil', rights.cancellable_until, 'movableUntil', rights.movable_until,
        'cancellable', rights.is_cancellable, 'movable', rights.is_movable, 'confirmable', rights.is_confirmable)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      JOIN provider ON provider.crm_id = appointment.crm_id AND provider.id = appointment.provider_id
     CROSS JOIN own_booking_rights(participation, appointment, present) AS rights
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND participation.state <> 'DELETED'
       -- Nobody knows whose an anonymised one was. A reservation may have nobody yet.
       AND (participation.customer_id IS NOT NULL OR participation.name IS NOT NULL OR participation.state = 'RESERVED')
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present)
       AND appointment.ends_at + interval '720 hours' > present);
END
$$;
