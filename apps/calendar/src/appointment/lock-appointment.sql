-- Locks an appointment of a provider and removes its expired reservations: they count as deleted, so it may have ended with them. All columns of `target` are null if
-- there is none. Called by other functions only.
--
-- Request: crmId, providerId, origin.
CREATE OR REPLACE FUNCTION lock_appointment(request jsonb, the_reference text) RETURNS TABLE (target appointment, reclaimed integer) LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
BEGIN
  SELECT * INTO target FROM appointment
   WHERE crm_id = the_crm AND provider_id = (request ->> 'providerId')::uuid AND reference = the_reference FOR NO KEY UPDATE;
  reclaimed := free_expired_seats(the_crm, target.id, request -> 'origin');
  IF reclaimed > 0 THEN SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND id = target.id; END IF;
  RETURN NEXT;
END
$$;

-- An appointment as an answer has it (see answers.sql).
--
-- Request: archiveAfterDays.
CREATE OR REPLACE FUNCTION appointment_answer(changed appointment, request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  RETURN jsonb_build_object(
    'id', changed.id, 'created', false,
    'appointment', (SELECT content FROM appointment_json(changed, scheduling_now(changed.crm_id), (request ->> 'archiveAfterDays')::integer)));
END
$$;
