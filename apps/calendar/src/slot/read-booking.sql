-- A participation with the slot that it takes part in.
--
-- Request: crmId, participationId.
-- Answer: participation, the fields of ParticipationRecord, and slot, those of SlotRecord; null if there is no such participation, or if it is an expired
--   reservation.
CREATE OR REPLACE FUNCTION read_booking(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object('participation', record.content || jsonb_build_object('appointmentReference', appointment.reference), 'slot', slot.content)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
     CROSS JOIN occupancy(appointment, present) AS seats
     CROSS JOIN slot_record(appointment, seats.taken) AS slot
     CROSS JOIN participation_record(participation, customer) AS record
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present));
END
$$;
