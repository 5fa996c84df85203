-- Stores a mail to a provider that has been written, in place of its row of provider_notice, unless that is no longer leased to whoever has written it. If its
-- recipient has got as many in this hour as one may, it becomes an entry of a list, which is written when the hour is over. Counting locks: no two mails are the
-- last one. Nothing of a deleted provider is stored; the deletion removes the row.
--
-- Request: crmId, id, lease; mail (the request of store_mail), recipientId and recipientDigest (hexadecimal), absent if there is nothing to send; customerId as stored; quota, how many
--   mails a recipient gets in windowSeconds (0: any number).
-- Answer: whether the lease was held.
CREATE OR REPLACE FUNCTION store_provider_mail(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  crm text := request ->> 'crmId';
  quota integer := (request ->> 'quota')::integer;
  window_length interval := make_interval(secs => (request ->> 'windowSeconds')::float8);
  window_end timestamptz := date_bin(window_length, now(), 'epoch') + window_length;
  notice provider_notice%ROWTYPE;
  sent_this_hour integer;
  list uuid;
BEGIN
  -- Before the lock of the row, as an erasure does.
  IF request ? 'customerId' THEN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', crm, request ->> 'customerId'), 0));
  END IF;
  IF provider_is_erased(crm, (SELECT provider_id FROM provider_notice WHERE crm_id = crm AND id = (request ->> 'id')::uuid)) THEN RETURN 'false'; END IF;
  SELECT * INTO notice FROM provider_notice WHERE crm_id = crm AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;

  -- Whoever does not know the list of a day has nothing to say: another version of the service writes it (store-daily-list.sql).
  IF notice.template = 'provider-day' THEN
    UPDATE provider_notice SET lease = NULL, due_at = now() + interval '1 second' WHERE crm_id = crm AND id = notice.id;
    RETURN 'false';
  END IF;

  IF request ? 'mail' AND quota > 0 THEN
    INSERT INTO provider_mail_count AS known (crm_id, recipient_digest, until, mails)
    VALUES (crm, decode(request ->> 'recipientDigest', 'hex'), window_end, 1)
    ON CONFLICT (crm_id, recipient_digest, until) DO UPDATE SET mails = known.mails + 1
    RETURNING mails INTO sent_this_hour;
    IF sent_this_hour > quota THEN
      list := list_of_provider(notice, (request ->> 'recipientId')::uuid, window_end);
      UPDATE provider_notice SET state = 'listed', list_id = list, lease = NULL WHERE crm_id = crm AND id = notice.id;
      RETURN 'true';
    END IF;
  END IF;

  DELETE FROM provider_notice WHERE crm_id = crm AND id = notice.id;
  IF request ? 'mail' THEN PERFORM store_mail(request -> 'mail'); END IF;
  RETURN 'true';
END
$$;
