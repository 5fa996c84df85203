-- Everything a mail about one version of a participation needs, as it is now.
--
-- Request: crmId, participationId, version, archiveAfterDays.
-- Answer: the fields of Notice in get-participation-notice.ts, times as text; null if there is no such participation, or if it is an expired reservation.
CREATE OR REPLACE FUNCTION read_participation_notice(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'participation', record.content || jsonb_build_object('appointmentReference', appointment.reference),
        'currentVersion', participation.version,
        'customerId', participation.customer_id,
        'language', customer.language,
        'message', (
          SELECT text FROM participation_message AS message
           WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id AND message.version = (request ->> 'version')::bigint),
        'appointment', jsonb_build_object(
          'providerId', appointment.provider_id, 'reference', appointment.reference, 'seriesId', appointment.series_id,
          'resourceReference', appointment.resource_reference, 'productReference', appointment.product_reference,
          'contactReference', appointment.contact_reference, 'description', appointment.description, 'notes', appointment.notes,
          'address', appointment.address, 'priceValue', appointment.price_value::text, 'priceCurrency', appointment.price_currency,
          'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at, 'capacity', appointment.capacity,
          'acceptBookings', appointment.accept_bookings, 'state', appointment.state,
          'archived', appointment.ends_at <= present - make_interval(hours => (request ->> 'archiveAfterDays')::integer * 24)))
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
     CROSS JOIN participation_record(participation, customer) AS record
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present));
END
$$;
