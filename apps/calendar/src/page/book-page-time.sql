-- Books what was chosen on a booking page: its hold becomes a booking or, if there is none any more, its place is booked under another reference. A choice is booked once:
-- whoever comes later finds what was made.
--
-- Request: holdReference; either invitationId and invitedId, of its customer, or email, maxPerPerson: how many future bookings the address may have, and maxOfDay: how
--   many it may have made on the page in 24 hours, also if they were cancelled (absent: any number); and either heldId (the hold's participation), with shownStart and shownEnd in epoch milliseconds, priceValue and priceCurrency, which the
--   person was shown, and the rest of confirm_hold's request; or the request of book_slot.
-- Answer: see answers.sql.
CREATE OR REPLACE FUNCTION book_page_time(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  the_invitation uuid := request ->> 'invitationId';
  made uuid;
  answer jsonb;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('page choice ' || the_crm || ' ' || (request ->> 'holdReference'), 0));
  made := (
    SELECT participation.id
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
     WHERE participation.crm_id = the_crm AND participation.reference IN (request ->> 'holdReference', request ->> 'reference')
       AND appointment.provider_id = the_provider AND participation.state <> 'RESERVED' AND participation.customer_id IS NOT NULL
     LIMIT 1);
  IF made IS NOT NULL THEN RETURN jsonb_build_object('id', made, 'created', false); END IF;

  -- After the lock of the choice, in all calls.
  IF the_invitation IS NOT NULL THEN
    answer := refusal_of_invitation(the_crm, the_invitation, (request ->> 'invitedId')::uuid);
    IF answer IS NOT NULL THEN RETURN answer; END IF;
    answer := book_chosen_place(request);
    IF answer ? 'id' THEN PERFORM note_invited(the_crm, the_invitation, (request ->> 'invitedId')::uuid, (answer ->> 'id')::uuid); END IF;
    RETURN answer;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws(' ', 'page address', request ->> 'providerId', address_key(request ->> 'email')), 0));
  IF future_bookings(the_crm, the_provider, request ->> 'email') >= (request ->> 'maxPerPerson')::integer
     OR page_bookings_of_day(the_crm, the_provider, request ->> 'email') >= (request ->> 'maxOfDay')::integer THEN
    RETURN error_answer('booking_page.limit_reached');
  END IF;
  RETURN book_chosen_place(request);
END
$$;

-- The part of book_page_time behind the locks of the choice, and of the person.
CREATE OR REPLACE FUNCTION book_chosen_place(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  held participation%ROWTYPE;
  target appointment%ROWTYPE;
BEGIN
  SELECT participation.* INTO held
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
   WHERE participation.crm_id = the_crm AND participation.reference = request ->> 'holdReference' AND participation.reserved_until > scheduling_now(the_crm)
     AND appointment.provider_id = the_provider;
  IF held.id IS DISTINCT FROM (request ->> 'heldId')::uuid THEN RETURN retry_answer('stale'); END IF;
  IF held.id IS NULL THEN RETURN book_slot(request); END IF;

  SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND id = held.appointment_id FOR NO KEY UPDATE;
  IF epoch_ms(target.starts_at) <> (request ->> 'shownStart')::bigint OR epoch_ms(target.ends_at) <> (request ->> 'shownEnd')::bigint THEN
    RETURN unavailable_answer('closed');
  END IF;
  IF (target.price_value, target.price_currency) IS DISTINCT FROM ((request ->> 'priceValue')::numeric, request ->> 'priceCurrency') THEN
    RETURN error_answer('booking_page.changed');
  END IF;
  RETURN confirm_hold(request || jsonb_build_object('participationId', held.id));
END
$$;
