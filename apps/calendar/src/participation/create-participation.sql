-- Books a seat in an appointment in one round trip (interface 4.3). It locks the appointment first, so only the holder of that lock allocates its seats; each statement
-- after the lock sees what was committed before it was granted (READ COMMITTED takes a snapshot per statement). The customer's row is locked too, so that an
-- erasure, which locks it FOR UPDATE, comes entirely before or after. If the reference exists, its participation is moved to the state instead.
--
-- Request: crmId, providerId, providerVersion, appointmentReference, customerReference, id, reference, state, message (if given), metadata (of one that is
--   created; null: none), ignoreCapacity, onDuplicateRaise, sendMails, origin (see append-events.sql).
-- Answer: see answers.sql. If another transaction concurrently takes the reference for another appointment, participation_reference_key is violated.
CREATE OR REPLACE FUNCTION create_participation(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  locked record;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_appointment(request, request ->> 'appointmentReference');
  RETURN join_appointment(request, locked.target) || jsonb_build_object('reclaimed', locked.reclaimed);
END
$$;

-- The part of create_participation behind the lock of the appointment.
CREATE OR REPLACE FUNCTION join_appointment(request jsonb, target appointment) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  new_state text := request ->> 'state';
  person customer%ROWTYPE;
  present participation%ROWTYPE;
BEGIN
  IF target.id IS NULL THEN RETURN error_answer('appointment.not_found'); END IF;
  person := customer_to_book_for(request, target.provider_id, request ->> 'customerReference');
  IF person.id IS NULL THEN RETURN retry_answer('customer'); END IF;

  SELECT * INTO present FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference';
  IF FOUND THEN
    IF present.reserved_until <= scheduling_now(the_crm) THEN RETURN retry_answer('reference'); END IF;
    IF (request ->> 'onDuplicateRaise')::boolean OR present.appointment_id <> target.id OR present.customer_id IS DISTINCT FROM person.id THEN
      RETURN error_answer('participation.reference_taken');
    END IF;
    RETURN change_state(request - 'metadata', target, present, NULL);
  END IF;

  IF is_active(new_state) AND target.state <> 'ACTIVE' THEN RETURN error_answer('appointment.cancelled'); END IF;
  IF takes_seat(new_state) AND NOT (request ->> 'ignoreCapacity')::boolean AND target.taken >= target.capacity THEN RETURN no_seat_answer(target); END IF;
  UPDATE appointment SET taken = taken + takes_seat(new_state)::integer, event_count = event_count + 1 WHERE crm_id = the_crm AND id = target.id RETURNING * INTO target;
  RETURN insert_participation(request, target, person);
END
$$;
