-- Stores that mails about a participation are to be written: one to the person, and those to the provider.
--
-- Request: crmId, mail (see store-unwritten-mail.sql; absent: none), providerNotices: an array (see store-provider-notice.sql).
-- Answer: null.
CREATE OR REPLACE FUNCTION store_mails_of_change(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  IF request ? 'mail' THEN PERFORM store_unwritten_mail(request -> 'mail'); END IF;
  PERFORM store_provider_notice(notice) FROM jsonb_array_elements(request -> 'providerNotices') AS each (notice);
  RETURN NULL;
END
$$;
