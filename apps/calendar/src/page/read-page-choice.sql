-- What has become of a choice on a booking page: the booking that was made of it or, before, the hold, unless it is over or the CRM has cancelled it.
--
-- Request: crmId, providerId, references (of the hold, and of a booking that was made when the hold was over).
-- Answer: the fields of ChoiceRow in page-choice.ts, times as text; null if there is none.
CREATE OR REPLACE FUNCTION read_page_choice(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  the_crm text := request ->> 'crmId';
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'participationId', participation.id, 'reference', participation.reference, 'state', participation.state, 'reservedUntil', participation.reserved_until,
        'appointmentReference', appointment.reference, 'resourceReference', appointment.resource_reference, 'productReference', appointment.product_reference,
        'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at, 'description', appointment.description, 'address', appointment.address,
        'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'emptiedAppointmentId', CASE WHEN ends_without(the_crm, appointment.id, participation.id) THEN appointment.id END)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
     WHERE participation.crm_id = the_crm AND participation.reference IN (SELECT jsonb_array_elements_text(request -> 'references'))
       AND appointment.provider_id = (request ->> 'providerId')::uuid
       AND (participation.reserved_until > scheduling_now(the_crm) OR participation.customer_id IS NOT NULL)
     ORDER BY participation.state = 'RESERVED'
     LIMIT 1);
END
$$;
