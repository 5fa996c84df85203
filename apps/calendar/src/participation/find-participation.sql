-- A participation with what decides about its moves.
--
-- Request: crmId, reference, providerReference (absent: of any provider of the CRM).
-- Answer: the fields of MovableParticipation, reservedUntil as text; null if there is none.
CREATE OR REPLACE FUNCTION find_participation(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT record.content || jsonb_build_object(
        'crmId', participation.crm_id, 'version', participation.version, 'appointmentId', participation.appointment_id, 'customerId', participation.customer_id,
        'appointmentReference', appointment.reference, 'appointmentState', appointment.state,
        'expired', coalesce(participation.reserved_until <= present, false))
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      JOIN provider ON provider.crm_id = appointment.crm_id AND provider.id = appointment.provider_id
      LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
     CROSS JOIN participation_record(participation, customer) AS record
     WHERE participation.crm_id = request ->> 'crmId' AND participation.reference = request ->> 'reference'
       AND provider.reference = coalesce(request ->> 'providerReference', provider.reference));
END
$$;
