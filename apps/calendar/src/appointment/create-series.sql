-- Creates all appointments of a series (interface 4.2).
--
-- Request: crmId, providerId, providerVersion, seriesId, the columns that all appointments have, in camelCase (address as text, contentDigest in hex), appointments (id,
--   reference, startsAt and endsAt of each), archiveAfterDays, origin (see append-events.sql).
-- Answer: see answers.sql, with the id of the series, and the texts of the appointments by start.
CREATE OR REPLACE FUNCTION create_series(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
  texts jsonb;
  number integer;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  WITH made AS (
    INSERT INTO appointment (
      crm_id, provider_id, series_id, id, reference, resource_reference, product_reference, contact_reference, description, notes, address, price_value, price_currency,
      starts_at, ends_at, capacity, taken, accept_bookings, content_digest, event_count, metadata)
    SELECT the_crm, (request ->> 'providerId')::uuid, request ->> 'seriesId', id, reference, request ->> 'resourceReference', request ->> 'productReference',
        request ->> 'contactReference', request ->> 'description', request ->> 'notes', (request ->> 'address')::jsonb, (request ->> 'priceValue')::numeric,
        request ->> 'priceCurrency', "startsAt", "endsAt", (request ->> 'capacity')::bigint, 0, (request ->> 'acceptBookings')::boolean,
        decode(request ->> 'contentDigest', 'hex'), 1, nullif(request -> 'metadata', 'null')
      FROM jsonb_to_recordset(request -> 'appointments') AS each(id uuid, reference text, "startsAt" timestamptz, "endsAt" timestamptz)
    RETURNING appointment)
  SELECT count(append_appointment_changed(appointment, 'CREATED', request -> 'origin')), jsonb_agg(content ORDER BY (appointment).starts_at)
    INTO number, texts
    FROM made, appointment_json(appointment, present, (request ->> 'archiveAfterDays')::integer);
  RETURN jsonb_build_object('id', request -> 'seriesId', 'created', true, 'appointments', texts);
END
$$;
