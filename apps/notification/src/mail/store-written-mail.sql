-- Stores a mail that has been written, in place of its row of unwritten_mail, unless that is no longer leased to whoever has written it. One that is urgent is
-- written before earlier ones about the same thing only if these wait for a quota, or cannot be written, so it supersedes them.
--
-- Request: that of store_mail with id and customerId, lease; content is absent if there is no mail to store.
-- Answer: whether the lease was held.
CREATE OR REPLACE FUNCTION store_written_mail(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  -- Before the lock of the row, as an erasure does.
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
  DELETE FROM unwritten_mail WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  IF NOT request ? 'content' THEN RETURN 'true'; END IF;

  PERFORM store_mail(request);
  IF request -> 'urgentTemplates' ? (request ->> 'template') THEN
    PERFORM supersede_unwritten_mails(request ->> 'crmId', array_agg(id)) FROM unwritten_mail
     WHERE crm_id = request ->> 'crmId' AND about_id = (request ->> 'aboutId')::uuid AND version < (request ->> 'version')::int
    HAVING count(*) > 0;
  END IF;
  RETURN 'true';
END
$$;
