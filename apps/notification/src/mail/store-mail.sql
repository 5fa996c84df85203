-- Stores a mail in one round trip, unless it was stored before, or its recipient or its provider was erased while it was being written. Of the mails about the same thing
-- that wait, it drops those between the first and the newest ones, because what they say is no longer true, but none that is urgent or being sent.
--
-- Request: crmId, eventId, aboutId, version, template, requestId, content; customerId if it is to a customer or, to a provider, about one; userId if the recipient is
--   a user, providerId if it is sent for or to a provider, expiresAt if it is not to be sent later, traceparent if it is traced; erasureId if it is the last mail to an erased customer, which
--   erasures do not prevent; actor, and calendarMethod if it has a calendar file, if it is about a change of a participation; organizer,
--   with its address and the eventEnd, if it puts an event into the calendar; resendOf if it is a copy of
--   another one; toldVersion, the version whose time and place it says, if that is a later one; id and createdAt if it was stored before it was written (absent: new ones); sandbox, true if it is to reach nobody; maxWaiting, how many mails about one thing may wait, not counting those with urgentTemplates (absent:
--   any number).
-- Answer: the id of the mail; null if it was not stored. A unique violation of mail_copy: another copy waits.
CREATE OR REPLACE FUNCTION store_mail(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  new_id uuid;
BEGIN
  IF request ? 'customerId' AND NOT request ? 'erasureId' THEN
    -- The erasure takes the same lock (lock-customer.ts). What it has committed is visible to the next statement.
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
    IF EXISTS (SELECT FROM erased_customer WHERE crm_id = request ->> 'crmId' AND customer_id = (request ->> 'customerId')::uuid) THEN RETURN NULL; END IF;
  END IF;
  IF request ? 'userId' THEN
    -- As above (erase-user.ts).
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('user %s %s', request ->> 'crmId', request ->> 'userId'), 0));
    IF EXISTS (SELECT FROM erased_user WHERE crm_id = request ->> 'crmId' AND user_id = (request ->> 'userId')::uuid) THEN RETURN NULL; END IF;
  END IF;
  -- The last mail to an erased customer is sent all the same (record-outcome.ts).
  IF NOT request ? 'erasureId' THEN
    IF provider_is_erased(request ->> 'crmId', (request ->> 'providerId')::uuid) THEN RETURN NULL; END IF;
  END IF;

  INSERT INTO mail (id, created_at, crm_id, event_id, about_id, version, template, customer_id, user_id, provider_id, erasure_id, actor, calendar_method, told_version, resend_of,
    sandbox, expires_at, request_id, traceparent, content, recipient)
  VALUES (
    coalesce((request ->> 'id')::uuid, uuidv7()), coalesce((request ->> 'createdAt')::timestamptz, now()),
    request ->> 'crmId', (request ->> 'eventId')::uuid, (request ->> 'aboutId')::uuid, (request ->> 'version')::int, request ->> 'template',
    (request ->> 'customerId')::uuid, (request ->> 'userId')::uuid, (request ->> 'providerId')::uuid, (request ->> 'erasureId')::uuid,
    request ->> 'actor', request ->> 'calendarMethod', (request ->> 'toldVersion')::int, (request ->> 'resendOf')::uuid,
    coalesce((request ->> 'sandbox')::boolean, false), (request ->> 'expiresAt')::timestamptz, request ->> 'requestId', request ->> 'traceparent', request -> 'content', address_key(request #>> '{content,to,address}'))
  ON CONFLICT ON CONSTRAINT mail_intent_key DO NOTHING
  RETURNING id INTO new_id;

  IF new_id IS NOT NULL AND request ? 'organizer' THEN
    INSERT INTO event_organizer AS known (crm_id, participation_id, provider_id, address, keep_until)
    VALUES (
      request ->> 'crmId', (request ->> 'aboutId')::uuid, (request ->> 'providerId')::uuid, request #>> '{organizer,address}',
      greatest(now(), (request #>> '{organizer,eventEnd}')::timestamptz) + interval '30 days')
    ON CONFLICT (crm_id, participation_id) DO UPDATE
       SET keep_until = greatest(known.keep_until, excluded.keep_until), provider_id = coalesce(known.provider_id, excluded.provider_id)
     WHERE known.keep_until < excluded.keep_until OR known.provider_id IS NULL;
  END IF;
  IF new_id IS NOT NULL AND request ? 'maxWaiting' THEN
    WITH waiting AS (
      SELECT id, row_number() OVER (ORDER BY version) AS place, row_number() OVER (ORDER BY version DESC) AS newest
        FROM mail
       WHERE crm_id = request ->> 'crmId' AND about_id = (request ->> 'aboutId')::uuid AND state = 'pending'
         AND NOT request -> 'urgentTemplates' ? template
    ), superseded AS (
      SELECT id FROM mail
       WHERE crm_id = request ->> 'crmId' AND state = 'pending' AND lease IS NULL
         AND id IN (SELECT id FROM waiting WHERE place > 1 AND newest >= (request ->> 'maxWaiting')::int)
         FOR UPDATE SKIP LOCKED
    )
    UPDATE mail SET state = 'failed', content = NULL, recipient = NULL, held = false, last_error = 'superseded', finished_at = now()
      FROM superseded
     WHERE mail.crm_id = request ->> 'crmId' AND mail.id = superseded.id;
  END IF;
  RETURN to_jsonb(new_id);
END
$$;
