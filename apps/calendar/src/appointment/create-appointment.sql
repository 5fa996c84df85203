-- Creates an appointment with its embedded participations in one round trip. The rules (which state takes a seat, how local times are read) belong to
-- the application and are passed in the request, so the provider's time zone must still be the one that the application has read.
--
-- Request: crmId, providerId, providerVersion, the columns of the appointment in camelCase (address as text, contentDigest in hex), archiveAfterDays,
--   reservationSeconds, participations (id, reference, name, email, mobile, note, state; the last three columns may be missing), origin (of the
--   events; see append-events.sql).
-- Answer: outcome, which is created, exists or provider_changed; for created also id, archived and reservedUntil, the end of reservations.
-- If one of the participations exists, participation_reference_key is violated.
CREATE OR REPLACE FUNCTION create_appointment(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  present timestamptz := scheduling_now(the_crm);
  held_until timestamptz := present + make_interval(secs => (request ->> 'reservationSeconds')::integer);
  origin jsonb := request -> 'origin';
  place appointment%ROWTYPE;
  embedded_count CONSTANT integer := jsonb_array_length(request -> 'participations');
  silently CONSTANT text := 'scheduling.calendar.v1.participation-changed-silently';
BEGIN
  PERFORM FROM provider WHERE crm_id = the_crm AND id = the_provider AND version = (request ->> 'providerVersion')::integer;
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'provider_changed'); END IF;

  INSERT INTO appointment (
    crm_id, provider_id, reference, resource_reference, product_reference, contact_reference, description, notes, address, price_value, price_currency,
    starts_at, ends_at, capacity, taken, accept_bookings, content_digest, event_count)
  VALUES (
    the_crm, the_provider, request ->> 'reference', request ->> 'resourceReference', request ->> 'productReference', request ->> 'contactReference',
    request ->> 'description', request ->> 'notes', (request ->> 'address')::jsonb, (request ->> 'priceValue')::numeric, request ->> 'priceCurrency',
    (request ->> 'startsAt')::timestamptz, (request ->> 'endsAt')::timestamptz, (request ->> 'capacity')::bigint, (request ->> 'taken')::bigint,
    (request ->> 'acceptBookings')::boolean, decode(request ->> 'contentDigest', 'hex'), 1 + embedded_count)
  ON CONFLICT ON CONSTRAINT appointment_reference_key DO NOTHING
  RETURNING * INTO place;
  IF NOT FOUND THEN RETURN jsonb_build_object('outcome', 'exists'); END IF;
  PERFORM append_appointment_changed(place, 'CREATED', origin);

  IF embedded_count > 0 THEN
    -- In the order of the references, so that two requests with the same ones cannot deadlock.
    WITH made AS (
      INSERT INTO participation (crm_id, id, appointment_id, reference, name, email, mobile, note, state, exempt, reserved_until)
      SELECT the_crm, id, place.id, reference, name, email, mobile, note, state, true, CASE WHEN state = 'RESERVED' THEN held_until END
        FROM jsonb_to_recordset(request -> 'participations')
          AS embedded(id uuid, reference text, name text, email text, mobile text, note text, state text)
       ORDER BY reference COLLATE "C"
      RETURNING participation
    )
    INSERT INTO outbox (subject, data, request_id, traceparent)
    SELECT silently, participation_changed_data(participation, the_provider, 'CREATED', NULL, silently, origin ->> 'actor', NULL, 1 + row_number() OVER ()::integer),
        origin ->> 'request_id', origin ->> 'traceparent'
      FROM made;
  END IF;
  RETURN jsonb_build_object('outcome', 'created', 'id', place.id, 'reservedUntil', held_until,
    'archived', place.ends_at <= present - make_interval(hours => (request ->> 'archiveAfterDays')::integer * 24));
END
$$;
