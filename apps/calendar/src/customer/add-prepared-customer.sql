-- The copy of a provisional customer, stored with the first booking for it, by which it exists (exclude-customer.ts). Called by other functions, which lock
-- appointments and participations first, and only before they book. Nobody is found by its reference until the customer service has answered with the customer: from
-- that moment on, the reference may change.
--
-- Arguments: the reference of the request, and prepared, which has the id, userName, email, mobile and language (the last three may be null).
-- Returns a row without an id if it cannot be booked for, or only by somebody who asks the customer service whom the reference means by now.
CREATE OR REPLACE FUNCTION add_prepared_customer(the_crm text, the_provider uuid, the_reference text, prepared jsonb) RETURNS customer LANGUAGE plpgsql AS $$
DECLARE
  the_id uuid := prepared ->> 'id';
  person customer%ROWTYPE;
BEGIN
  INSERT INTO customer (crm_id, id, provider_id, reference, user_name, email, mobile, language, version, reference_known)
  VALUES (
    the_crm, the_id, the_provider, the_reference, prepared ->> 'userName', prepared ->> 'email', prepared ->> 'mobile', prepared ->> 'language', 0, false)
  ON CONFLICT (crm_id, id) DO NOTHING;
  -- Somebody else may have booked for it, or excluded it.
  SELECT * INTO person FROM customer
   WHERE crm_id = the_crm AND id = the_id AND reference = the_reference AND version = 0 AND required_version = 0 FOR KEY SHARE;
  RETURN person;
END
$$;
