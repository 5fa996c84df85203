-- Creates an appointment with its embedded participations in one round trip (interface 4.2). How local times are read belongs to the application, so the provider's
-- time zone must still be the one that the application has read.
--
-- Request: crmId, providerId, providerVersion, the columns of the appointment in camelCase (address as text, contentDigest in hex), archiveAfterDays, participations
--   (id, reference, name, email, mobile, note, state, metadata; mobile, note and metadata may be missing), origin (see append-events.sql).
-- Answer: see answers.sql, with the id and the text of the appointment (appointment-json.sql). For a reference that exists with the same content, it is that one, as it
--   is now. If another transaction concurrently takes the reference of a participation, participation_reference_key is violated.
CREATE OR REPLACE FUNCTION create_appointment(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  the_reference text := request ->> 'reference';
  the_digest bytea := decode(request ->> 'contentDigest', 'hex');
  embedded jsonb := request -> 'participations';
  embedded_count integer := jsonb_array_length(embedded);
  entered jsonb;
  seats bigint := 0;
  rejection jsonb;
  made appointment%ROWTYPE;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  IF embedded_count > 0 THEN
    rejection := reference_rejection(the_crm, embedded);
    IF rejection IS NOT NULL AND NOT EXISTS (SELECT FROM appointment WHERE crm_id = the_crm AND reference = the_reference) THEN RETURN rejection; END IF;
    SELECT jsonb_object_agg(state, number), coalesce(sum(number) FILTER (WHERE takes_seat(state)), 0) INTO entered, seats
      FROM (SELECT each ->> 'state' AS state, count(*) AS number FROM jsonb_array_elements(embedded) AS each GROUP BY state) AS counted;
  END IF;

  INSERT INTO appointment (
    crm_id, provider_id, reference, resource_reference, product_reference, contact_reference, description, notes, address, price_value, price_currency,
    starts_at, ends_at, capacity, taken, accept_bookings, content_digest, event_count, metadata)
  VALUES (
    the_crm, the_provider, the_reference, request ->> 'resourceReference', request ->> 'productReference', request ->> 'contactReference',
    request ->> 'description', request ->> 'notes', (request ->> 'address')::jsonb, (request ->> 'priceValue')::numeric, request ->> 'priceCurrency',
    (request ->> 'startsAt')::timestamptz, (request ->> 'endsAt')::timestamptz, (request ->> 'capacity')::bigint, seats,
    (request ->> 'acceptBookings')::boolean, the_digest, 1 + embedded_count,
    nullif(request -> 'metadata', 'null'))
  ON CONFLICT ON CONSTRAINT appointment_reference_key DO NOTHING
  RETURNING * INTO made;
  IF NOT FOUND THEN
    SELECT * INTO made FROM appointment WHERE crm_id = the_crm AND reference = the_reference;
    IF NOT FOUND THEN RETURN retry_answer('stale'); END IF;
    IF made.provider_id <> the_provider OR made.content_digest <> the_digest THEN RETURN error_answer('appointment.reference_taken'); END IF;
    RETURN appointment_answer(made, request);
  END IF;
  PERFORM append_appointment_changed(made, 'CREATED', request -> 'origin');
  IF embedded_count > 0 THEN PERFORM embed_participations(made, embedded, request -> 'origin'); END IF;
  RETURN appointment_answer(made, request) || jsonb_build_object('created', true, 'seats', seats, 'entered', entered);
END
$$;

-- All of these are called by create_appointment only.

-- Why participations cannot get their references, as an answer; null if they can.
CREATE OR REPLACE FUNCTION reference_rejection(the_crm text, embedded jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  all_expired boolean;
BEGIN
  -- One by one: otherwise a plan that is made while the table is small reads all of it, also when it has grown.
  SELECT bool_and(coalesce(present.reserved_until <= scheduling_now(the_crm), false)) INTO all_expired
    FROM jsonb_array_elements(embedded) AS each
   CROSS JOIN LATERAL (SELECT reserved_until FROM participation WHERE crm_id = the_crm AND reference = each ->> 'reference' OFFSET 0) AS present;
  RETURN CASE all_expired WHEN true THEN retry_answer('reference') WHEN false THEN error_answer('participation.reference_taken') END;
END
$$;

-- In the order of the references, so that two requests with the same ones cannot deadlock. They are never rejected for lack of capacity, and get no mail.
CREATE OR REPLACE FUNCTION embed_participations(target appointment, embedded jsonb, origin jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  WITH made AS (
    INSERT INTO participation (crm_id, id, appointment_id, reference, name, email, mobile, note, state, exempt, reserved_until, metadata)
    SELECT target.crm_id, id, target.id, reference, name, email, mobile, note, state, true, expiry_of(state, target.crm_id), metadata
      FROM jsonb_to_recordset(embedded) AS each(id uuid, reference text, name text, email text, mobile text, note text, state text, metadata jsonb)
     ORDER BY reference COLLATE "C"
    RETURNING participation
  )
  INSERT INTO outbox (subject, data, request_id, traceparent)
  SELECT participation_subject(false),
      participation_changed_data(participation, target.provider_id, 'CREATED', NULL, origin, NULL, 1 + row_number() OVER ()::integer),
      origin ->> 'request_id', origin ->> 'traceparent'
    FROM made;
END
$$;
