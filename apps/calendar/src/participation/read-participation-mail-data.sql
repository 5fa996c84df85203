-- What a mail about one version of a participation needs, as it is now (interface 6).
--
-- Request: crmId, participationId, version.
-- Answer: the fields of ParticipationMailData in get-participation-mail-data.ts, times as text; null if there is no such participation, or if it is an expired reservation.
CREATE OR REPLACE FUNCTION read_participation_mail_data(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        -- That the person will be there is no change that a mail would be about. It is the last one as long as it is noted of a booking.
        'currentVersion', participation.version - (participation.state = 'BOOKED' AND participation.attendance_confirmed_at IS NOT NULL)::integer,
        'reference', participation.reference, 'customerId', participation.customer_id,
        'name', participation.name, 'email', participation.email, 'mobile', participation.mobile, 'note', participation.note, 'state', participation.state,
        'message', (
          SELECT text FROM participation_message AS message
           WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id AND message.version = (request ->> 'version')::bigint),
        'providerId', appointment.provider_id, 'contactReference', appointment.contact_reference, 'description', appointment.description, 'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at,
        'address', appointment.address, 'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'selfService', coalesce(rules.self_service, rules.page, false),
        'cancellableUntil', CASE WHEN rights.is_cancellable THEN rights.cancellable_until END,
        'movableUntil', CASE WHEN rights.is_movable THEN rights.movable_until END)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      LEFT JOIN booking_rules AS rules ON rules.crm_id = appointment.crm_id AND rules.provider_id = appointment.provider_id
     CROSS JOIN own_booking_rights(participation, appointment, present) AS rights
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present));
END
$$;
