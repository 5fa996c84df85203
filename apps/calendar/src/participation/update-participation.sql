-- Changes the state of a participation, or what the CRM notes of it, in one round trip (interface 4.3), with the same locks in the same order as create_participation.
--
-- Request: crmId, providerId, providerVersion, participationId, participationReference, ignoreCapacity, sendMails, origin (see append-events.sql), and if given state, message,
--   metadata (null clears it) and noShow.
-- Answer: see answers.sql.
CREATE OR REPLACE FUNCTION update_participation(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  locked record;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  RETURN coalesce(locked.rejection, change_state(request, locked.target, locked.present, NULL)) || jsonb_build_object('reclaimed', locked.reclaimed);
END
$$;

-- Locks a participation of a provider, after its appointment, of which it removes the expired reservations. Called by other functions only.
--
-- Request: crmId, providerId, participationId, origin; participationReference, by which the caller knows it (absent: by the id alone).
-- Answer: both as they are behind the locks, or a rejection; and the number of reservations that were removed.
CREATE OR REPLACE FUNCTION lock_participation(request jsonb)
RETURNS TABLE (target appointment, present participation, rejection jsonb, reclaimed integer) LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_participation uuid := request ->> 'participationId';
  the_appointment uuid;
BEGIN
  SELECT id INTO the_appointment FROM appointment
   WHERE crm_id = the_crm AND provider_id = (request ->> 'providerId')::uuid
     AND id = (SELECT appointment_id FROM participation WHERE crm_id = the_crm AND id = the_participation)
     FOR NO KEY UPDATE;
  reclaimed := free_expired_seats(the_crm, the_appointment, request -> 'origin');
  SELECT * INTO present FROM participation WHERE crm_id = the_crm AND id = the_participation FOR NO KEY UPDATE;
  rejection := CASE
    WHEN NOT FOUND THEN error_answer('participation.not_found')
    -- It has been anonymised since.
    WHEN present.reference <> request ->> 'participationReference' THEN error_answer('participation.not_found')
    -- It has been moved since.
    WHEN present.appointment_id IS DISTINCT FROM the_appointment THEN retry_answer('stale') END;
  SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND id = the_appointment;
  RETURN NEXT;
END
$$;
