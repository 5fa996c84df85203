-- The fields of ParticipationRecord in participation.ts but the appointmentReference, reservedUntil as text.
--
-- Postgres writes the body in place of a call (`FROM participation, customer, participation_record(participation, customer)`), because it is a single
-- SELECT, STABLE and not STRICT: there may be no customer.
CREATE OR REPLACE FUNCTION participation_record(participation participation, customer customer) RETURNS TABLE (content jsonb) LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object(
    'id', participation.id, 'reference', participation.reference, 'customerReference', customer.reference, 'state', participation.state, 'note', participation.note,
    'reservedUntil', participation.reserved_until,
    'name', coalesce(customer.user_name, participation.name, ''),
    'email', coalesce(customer.email, participation.email),
    'mobile', coalesce(customer.mobile, participation.mobile),
    'messages', array_to_json(ARRAY(
      SELECT text FROM participation_message AS message
       WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id
       ORDER BY message.version)))
$$;
