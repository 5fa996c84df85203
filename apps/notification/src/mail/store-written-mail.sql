-- Stores a mail that has been written, in place of its row of unwritten_mail, unless that is no longer leased to whoever has written it. If a later one about the
-- same thing was written first, it is superseded: nobody reads what was true earlier after what is true now. A later one that was dropped itself, because too many
-- waited, does not count: the first of those that wait is sent (interface 6.3). One that is urgent is written before earlier ones
-- only if these wait for a quota, or cannot be written, so it supersedes them. A reminder is superseded by anything later that waits.
--
-- Request: that of store_mail with id and customerId, lease; content is absent if there is no mail to store.
-- Answer: whether the lease was held.
CREATE OR REPLACE FUNCTION store_written_mail(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  -- Before the lock of the row, as an erasure does.
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
  PERFORM FROM unwritten_mail WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  IF request ? 'content' AND EXISTS (
    SELECT FROM mail AS later
     WHERE later.crm_id = request ->> 'crmId' AND later.about_id = (request ->> 'aboutId')::uuid AND later.version > (request ->> 'version')::int
       AND later.last_error IS DISTINCT FROM 'superseded'
  ) OR request ->> 'template' IN ('booking-reminder', 'request-unconfirmed') AND is_reminder_superseded(
    request ->> 'crmId', (request ->> 'aboutId')::uuid, (request ->> 'version')::int, (request ->> 'expiresAt')::timestamptz, (request ->> 'id')::uuid
  ) THEN
    PERFORM supersede_unwritten_mails(request ->> 'crmId', ARRAY[(request ->> 'id')::uuid]);
    RETURN 'true';
  END IF;
  DELETE FROM unwritten_mail WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid;
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
