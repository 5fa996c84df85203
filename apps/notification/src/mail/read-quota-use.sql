-- Reads how many mails were sent in the current window to the recipients of some leased mails, and by some of their CRMs in total. It counts no further
-- than the quotas. And it reads how they stand to the other mails about the same things: whether they are superseded, because a later urgent one overtakes
-- them or, if they are reminders, because anything later waits; and whether an earlier one is being sent. Two that were leased at the same moment see each
-- other, whichever comes first.
--
-- Request: windowSeconds, toOneRecipient, inTotal, urgentTemplates; mails: an array of crmId, id, lease, recipientDigest (hexadecimal); countedCrms: ids.
-- Answer: a row for each mail, with inTotal null if its CRM is not counted. One whose lease is lost, whose person was erased, or before which an earlier one is being
--   sent has none. (The columns cannot change: sessions of a version that is running have planned this statement.)
CREATE OR REPLACE FUNCTION read_quota_use(request jsonb)
RETURNS TABLE ("crmId" text, lease uuid, "toRecipient" integer, "inTotal" integer, "windowEnd" timestamptz, "isSuperseded" boolean)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  window_length interval := make_interval(secs => (request ->> 'windowSeconds')::float8);
  window_start timestamptz := date_bin(window_length, now(), 'epoch');
BEGIN
  RETURN QUERY
    WITH asked AS (
      SELECT "crmId" AS crm_id, id, lease, decode("recipientDigest", 'hex') AS recipient_digest
        FROM jsonb_to_recordset(request -> 'mails') AS mails ("crmId" text, id uuid, lease uuid, "recipientDigest" text)
    ), crm AS MATERIALIZED (
      SELECT crm_id, (
               SELECT count(*)::integer
                 FROM (SELECT FROM recent_mail WHERE recent_mail.crm_id = each.crm_id AND sent_at >= window_start LIMIT (request ->> 'inTotal')::integer) AS counted
             ) AS in_total
        FROM jsonb_array_elements_text(request -> 'countedCrms') AS each (crm_id)
    )
    SELECT mail.crm_id,
           mail.lease,
           (SELECT count(*)::integer
              FROM (SELECT FROM recent_mail
                     WHERE recent_mail.crm_id = mail.crm_id AND recent_mail.recipient_digest = asked.recipient_digest AND sent_at >= window_start
                     LIMIT (request ->> 'toOneRecipient')::integer) AS counted),
           in_total,
           window_start + window_length,
           EXISTS (
             SELECT FROM mail AS later
              WHERE later.crm_id = mail.crm_id AND later.about_id = mail.about_id AND later.version > mail.version
                AND later.state = 'pending' AND request -> 'urgentTemplates' ? later.template AND (mail.held OR later.lease IS NOT NULL))
             OR CASE WHEN mail.template IN ('booking-reminder', 'request-unconfirmed') AND mail.resend_of IS NULL
                  THEN is_reminder_superseded(mail.crm_id, mail.about_id, mail.version, mail.expires_at, mail.id) ELSE false END
      FROM asked
      LEFT JOIN crm USING (crm_id)
     -- One by one, whatever the plan assumes about the table.
     CROSS JOIN LATERAL (
       SELECT * FROM mail WHERE mail.crm_id = asked.crm_id AND mail.id = asked.id AND mail.lease = asked.lease AND erased_at IS NULL LIMIT 1
     ) AS mail
     WHERE NOT EXISTS (
       SELECT FROM mail AS earlier
        WHERE earlier.crm_id = mail.crm_id AND earlier.about_id = mail.about_id AND earlier.version < mail.version
          AND earlier.state = 'pending' AND earlier.lease IS NOT NULL);
END
$$;
