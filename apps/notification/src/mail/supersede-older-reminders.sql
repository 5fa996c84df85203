-- Drops the older reminders that wait, in the order of is-reminder-superseded.sql, because this one was sent.
CREATE OR REPLACE FUNCTION supersede_older_reminders(sent mail) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM supersede_unwritten_mails(sent.crm_id, array_agg(id)) FROM unwritten_mail
   WHERE crm_id = sent.crm_id AND about_id = sent.about_id AND template = 'booking-reminder' AND (version, expires_at, id) < (sent.version, sent.expires_at, sent.id)
  HAVING count(*) > 0;
  UPDATE mail SET state = 'failed', content = NULL, recipient = NULL, lease = NULL, held = false, last_error = 'superseded', finished_at = now()
   WHERE crm_id = sent.crm_id AND about_id = sent.about_id AND template = 'booking-reminder' AND state = 'pending' AND resend_of IS NULL
     AND (version, expires_at, id) < (sent.version, sent.expires_at, sent.id);
END
$$;
