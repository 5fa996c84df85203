-- Confirms a hold in one round trip (interface 10.3), for the customer of the request if it has none yet, with the same locks in the same order as create_participation.
--
-- Request: crmId, providerId, providerVersion, participationId, customerReference (if given), state (BOOKED), message (if given), sendMails, origin (see
--   append-events.sql); and if the customer service has prepared the customer, prepared (see add-prepared-customer.sql).
-- Answer: see answers.sql, and slot (see slot-details.sql).
CREATE OR REPLACE FUNCTION confirm_hold(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  locked record;
  answer jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  answer := coalesce(locked.rejection, confirm_locked_hold(request, locked.target, locked.present)) || jsonb_build_object('reclaimed', locked.reclaimed);
  RETURN CASE WHEN answer ? 'id' THEN answer || booking_content(request ->> 'crmId', (request ->> 'participationId')::uuid, NULL) ELSE answer END;
END
$$;

-- The part of confirm_hold behind the locks.
CREATE OR REPLACE FUNCTION confirm_locked_hold(request jsonb, target appointment, present participation) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_reference text := request ->> 'customerReference';
  is_new boolean := present.state = 'RESERVED' AND present.customer_id IS NULL;
  somebody_else CONSTANT jsonb := error_answer('participation.move_not_allowed', '{"text": "The booking is that of somebody else."}');
  person customer%ROWTYPE;
BEGIN
  IF present.state NOT IN ('RESERVED', 'BOOKED') THEN
    RETURN error_answer('participation.move_not_allowed', jsonb_build_object('text', format('A participation that is %s is not a hold.', present.state)));
  END IF;
  IF the_reference IS NOT NULL AND NOT is_new THEN
    SELECT * INTO person FROM known_customer(request ->> 'crmId', target.provider_id, the_reference);
    -- A customer who does not exist yet is not the one of the booking.
    IF person.id IS NULL THEN RETURN retry_answer('customer') || somebody_else; END IF;
    IF person.id IS DISTINCT FROM present.customer_id THEN RETURN somebody_else; END IF;
  END IF;
  RETURN change_state(request, target, present, CASE WHEN is_new THEN the_reference END);
END
$$;
