-- The customer of a provider that a reference means, as far as calendar knows: no row, if the customer service must be asked.
CREATE OR REPLACE FUNCTION known_customer(the_crm text, the_provider uuid, the_reference text) RETURNS SETOF customer LANGUAGE sql STABLE AS $$
  SELECT * FROM customer
   WHERE crm_id = the_crm AND provider_id = the_provider AND reference = the_reference AND reference_known
   ORDER BY refreshed_at DESC LIMIT 1
$$;

-- The same for a booking: the row is locked, so that an erasure, which locks it FOR UPDATE, comes entirely before or after. If calendar knows nobody and the request has a
-- customer that was prepared, that one (add-prepared-customer.sql). All columns are null, if the customer service must be asked.
CREATE OR REPLACE FUNCTION customer_to_book_for(request jsonb, the_provider uuid, the_reference text) RETURNS customer LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  person customer%ROWTYPE;
BEGIN
  SELECT * INTO person FROM customer
   WHERE crm_id = the_crm AND provider_id = the_provider AND reference = the_reference AND reference_known
   ORDER BY refreshed_at DESC LIMIT 1 FOR KEY SHARE;
  IF NOT FOUND AND request ? 'prepared' THEN person := add_prepared_customer(the_crm, the_provider, the_reference, request -> 'prepared'); END IF;
  RETURN person;
END
$$;
