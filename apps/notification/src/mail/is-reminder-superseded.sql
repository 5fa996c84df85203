-- Whether a reminder need not be sent (interface 6.3), because something else about the same participation waits: a mail about a later change, which says what is
-- true now, or a newer reminder. Reminders that wait at the same time have become due during an outage, and say the same, so one is sent: the newest, which is the
-- shortest. Their order is the same wherever it is asked for, so two of them never give way to each other. Copies that were requested do not count.
CREATE OR REPLACE FUNCTION is_reminder_superseded(the_crm text, participation_id uuid, its_version integer, its_expiry timestamptz, its_id uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT FROM unwritten_mail
     WHERE crm_id = the_crm AND about_id = participation_id
       AND (version > its_version OR template = 'booking-reminder' AND (version, expires_at, id) > (its_version, its_expiry, its_id))
    UNION ALL
    SELECT FROM mail
     WHERE crm_id = the_crm AND about_id = participation_id AND state = 'pending' AND resend_of IS NULL
       AND (version > its_version OR template = 'booking-reminder' AND (version, expires_at, id) > (its_version, its_expiry, its_id)))
$$;
