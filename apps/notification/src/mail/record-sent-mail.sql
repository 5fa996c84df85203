-- Records that a mail was sent, and counts it for the quotas, unless its lease is lost, or its person or provider was erased meanwhile. One of a sandbox is
-- kept, unless it is the last one to an erased person. Older reminders that wait are superseded by one that was sent.
--
-- Request: crmId, id, lease, recipientDigest (hexadecimal; absent: the mail does not count).
-- Answer: whether it was recorded.
CREATE OR REPLACE FUNCTION record_sent_mail(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  sent mail%ROWTYPE;
BEGIN
  UPDATE mail
     SET state = 'sent', content = NULL, recipient = NULL, lease = NULL, held = false, attempts = attempts + 1, last_error = NULL, finished_at = now()
   WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid AND erased_at IS NULL
  RETURNING old.* INTO sent;
  IF NOT FOUND THEN RETURN 'false'; END IF;

  IF sent.sandbox AND sent.erasure_id IS NULL THEN
    INSERT INTO sandbox_mail (crm_id, mail_id, recipient, content) VALUES (sent.crm_id, sent.id, sent.recipient, sent.content);
  END IF;
  IF sent.template = 'booking-reminder' AND sent.resend_of IS NULL THEN PERFORM supersede_older_reminders(sent); END IF;
  IF request ? 'recipientDigest' THEN
    INSERT INTO recent_mail (crm_id, mail_id, recipient_digest)
    VALUES (request ->> 'crmId', (request ->> 'id')::uuid, decode(request ->> 'recipientDigest', 'hex'));
  END IF;
  RETURN 'true';
END
$$;
