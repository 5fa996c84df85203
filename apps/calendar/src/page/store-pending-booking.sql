-- What identifies an address in verification_mail.
CREATE OR REPLACE FUNCTION address_digest(address text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT sha256(convert_to(address_key(address), 'UTF8'))
$$;

-- Stores what somebody wants to book on a page, and has the mail written by which whoever has the address confirms it: at most three unconfirmed ones of a CRM to an address
-- in a day. After that none is written, and nobody but the owner of the address can tell. The same again is the same row, without a mail; anything else is another one,
-- so that nobody can change what a mail is about.
--
-- Request: crmId, id, the columns of pending_booking but expires_at and customer_id, as camelCase, minutes (how long the link works), origin (see append-events.sql).
-- Answer: id, of the row.
CREATE OR REPLACE FUNCTION store_pending_booking(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_id uuid := request ->> 'id';
  digest CONSTANT bytea := address_digest(request ->> 'email');
  present CONSTANT timestamptz := clock_timestamp();
  stored uuid;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('page mails ' || the_crm || ' ' || encode(digest, 'hex'), 0));
  stored := (
    SELECT id FROM pending_booking
     WHERE crm_id = the_crm AND address_key(email) = address_key(request ->> 'email') AND expires_at > present
       AND provider_id = (request ->> 'providerId')::uuid AND choice = (request ->> 'choice')::uuid
       AND (offer, resource_reference, starts_at, name, mobile, note) IS NOT DISTINCT FROM (
         request ->> 'offer', request ->> 'resourceReference', (request ->> 'startsAt')::timestamptz, request ->> 'name', request ->> 'mobile', request ->> 'note')
     LIMIT 1);
  IF stored IS NOT NULL THEN RETURN jsonb_build_object('id', stored); END IF;
  INSERT INTO pending_booking (
    crm_id, id, provider_id, choice, offer, description, resource_reference, starts_at, ends_at, address, price_value, price_currency, name, email, mobile, note, language,
    expires_at)
  VALUES (
    the_crm, the_id, (request ->> 'providerId')::uuid, (request ->> 'choice')::uuid, request ->> 'offer', request ->> 'description',
    request ->> 'resourceReference', (request ->> 'startsAt')::timestamptz, (request ->> 'endsAt')::timestamptz, nullif(request -> 'address', 'null'),
    (request ->> 'priceValue')::numeric, request ->> 'priceCurrency', request ->> 'name', request ->> 'email', request ->> 'mobile', request ->> 'note',
    request ->> 'language', present + make_interval(mins => (request ->> 'minutes')::integer));
  IF (SELECT count(*) FROM verification_mail WHERE crm_id = the_crm AND address_digest = digest AND sent_at > present - interval '24 hours') < 3 THEN
    INSERT INTO verification_mail (crm_id, pending_booking_id, address_digest) VALUES (the_crm, the_id, digest);
    INSERT INTO outbox (subject, data, request_id, traceparent)
    VALUES (
      'scheduling.calendar.v1.booking-verification-requested', json_build_object('crmId', the_crm, 'pendingBookingId', the_id),
      coalesce(request #>> '{origin,request_id}', gen_random_uuid()::text), request #>> '{origin,traceparent}');
  END IF;
  RETURN jsonb_build_object('id', the_id);
END
$$;

-- { crmId, email } -> {}: an address that has confirmed a booking, or is erased, has had no unconfirmed mails.
CREATE OR REPLACE FUNCTION forget_verification_mails(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM verification_mail WHERE crm_id = request ->> 'crmId' AND address_digest = address_digest(request ->> 'email');
  RETURN '{}';
END
$$;
