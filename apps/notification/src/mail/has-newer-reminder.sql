-- Whether a newer reminder of the same participation waits. Reminders that wait at the same time have become due during an outage, and say the same, so one is sent:
-- the newest, which is the shortest. Their order is the same wherever it is asked for, so two of them never give way to each other. Copies that were requested
-- (interface 4.3) do not count.
CREATE OR REPLACE FUNCTION has_newer_reminder(the_crm text, participation_id uuid, its_version integer, its_expiry timestamptz, its_id uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT FROM unwritten_mail
     WHERE crm_id = the_crm AND about_id = participation_id AND template = 'booking-reminder' AND (version, expires_at, id) > (its_version, its_expiry, its_id)
    UNION ALL
    SELECT FROM mail
     WHERE crm_id = the_crm AND about_id = participation_id AND template = 'booking-reminder' AND state = 'pending' AND resend_of IS NULL
       AND (version, expires_at, id) > (its_version, its_expiry, its_id))
$$;
