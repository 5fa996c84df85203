-- Books a slot in one round trip (interface 10.2): joins the open appointment of that slot, or makes one; see claim-place.sql. How local times are read belongs to the
-- application, so the provider's time zone must still be the one that the application has read.
--
-- Request: crmId, providerId, providerVersion, and where: either timeslotReference, startsAt, minutes (absent: one raster) and productReference, with the
--   details of an appointment that is made: newReference, contentDigest in hex, description, contactReference, priceValue, priceCurrency;
--   or appointmentReference. ignoreNotice. The participation: id, reference, customerReference (absent for a hold without a customer), state, message (if given),
--   metadata (null: none), sendMails, origin (see append-events.sql); and if the customer service has prepared the customer, prepared (see add-prepared-customer.sql).
-- Answer: see answers.sql, and slot (see slot-details.sql). If another transaction concurrently takes the reference, participation_reference_key is violated.
CREATE OR REPLACE FUNCTION book_slot(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  opening timeslot%ROWTYPE;
  known record;
  claim record;
  target appointment%ROWTYPE;
  person customer%ROWTYPE;
  reclaimed jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  IF request ? 'timeslotReference' THEN
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'timeslotReference';
    IF NOT FOUND THEN RETURN missing_timeslot_answer(request ->> 'timeslotReference'); END IF;
  END IF;
  SELECT participation.id, participation.customer_id, participation.reserved_until <= scheduling_now(the_crm) AS is_over, is_place(appointment, opening, request) AS same_place
    INTO known
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
   WHERE participation.crm_id = the_crm AND participation.reference = request ->> 'reference';
  IF FOUND THEN
    SELECT * INTO person FROM known_customer(the_crm, the_provider, request ->> 'customerReference');
    RETURN CASE
      WHEN known.is_over THEN retry_answer('reference')
      WHEN NOT known.same_place THEN error_answer('participation.reference_taken')
      -- A customer who does not exist yet is not the one of a participation that exists.
      WHEN person.id IS NULL AND request ->> 'customerReference' IS NOT NULL THEN retry_answer('customer') || error_answer('participation.reference_taken')
      WHEN known.customer_id IS DISTINCT FROM person.id THEN error_answer('participation.reference_taken')
      ELSE present_booking_answer(the_crm, known.id, request ->> 'timeslotReference') END;
  END IF;

  SELECT * INTO claim FROM claim_place(request, opening, NULL);
  reclaimed := jsonb_build_object('reclaimed', claim.reclaimed);
  -- The place may be that of this very booking, made by a request that was faster to lock it.
  IF is_unavailable(claim.rejection) AND EXISTS (SELECT FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference') THEN
    RETURN reclaimed || retry_answer('stale');
  END IF;
  IF claim.rejection IS NOT NULL THEN RETURN reclaimed || claim.rejection; END IF;
  IF request ->> 'customerReference' IS NOT NULL THEN
    person := customer_to_book_for(request, the_provider, request ->> 'customerReference');
    IF person.id IS NULL THEN RETURN reclaimed || retry_answer('customer'); END IF;
  END IF;

  target := take_place(request, claim.opening, claim.target, claim.slot_start, claim.slot_end, takes_seat(request ->> 'state')::integer);
  RETURN reclaimed || insert_participation(request, target, person)
    || jsonb_build_object('slot', slot_of(target, target.taken, request ->> 'timeslotReference'));
END
$$;
