-- Removes a person from what a provider is told: mails that wait to be written, and entries of lists. A list that waits to be sent is written again without the
-- person, unless its provider was deleted; one that a sandbox keeps is deleted. The lock of lock-customer.ts is held.
--
-- Request: crmId, customerId.
-- Answer: null.
CREATE OR REPLACE FUNCTION erase_from_lists(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  crm text := request ->> 'crmId';
  lists uuid[];
  days jsonb;
  erased mail%ROWTYPE;
  list uuid;
BEGIN
  -- Before the locks of rows, as in store-daily-list.sql.
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('daily lists %s', crm), 0));
  WITH removed AS (
    DELETE FROM provider_notice
     WHERE crm_id = crm AND id IN (
       SELECT id FROM provider_notice WHERE crm_id = crm AND customer_id = (request ->> 'customerId')::uuid ORDER BY id FOR UPDATE)
    RETURNING list_id, day
  )
  SELECT array_agg(DISTINCT list_id), jsonb_object_agg(list_id, day) INTO lists, days FROM removed WHERE list_id IS NOT NULL;

  FOR erased IN DELETE FROM mail WHERE crm_id = crm AND id = ANY (lists) AND state = 'pending' RETURNING old.* LOOP
    CONTINUE WHEN provider_is_erased(crm, erased.provider_id);
    IF erased.template = 'provider-day' THEN
      INSERT INTO provider_notice (crm_id, id, event_id, recipient, template, about_id, version, provider_id, actor, request_id, day, expires_at)
      VALUES (
        crm, erased.id, erased.event_id, 'PROVIDER', erased.template, erased.about_id, 0, erased.provider_id, 'service', erased.request_id,
        (days ->> erased.id::text)::date, erased.expires_at)
      ON CONFLICT ON CONSTRAINT provider_notice_intent_key DO NOTHING;
      CONTINUE;
    END IF;
    INSERT INTO provider_notice AS known (crm_id, id, event_id, recipient, template, about_id, version, provider_id, actor, request_id, recipient_id)
    SELECT crm, erased.id, erased.event_id, entry.recipient, erased.template, erased.about_id, 0, erased.provider_id, 'service', erased.request_id,
           coalesce(erased.user_id, erased.provider_id)
      FROM provider_notice AS entry WHERE entry.crm_id = crm AND entry.list_id = erased.id LIMIT 1
    ON CONFLICT (crm_id, about_id) WHERE template = 'provider-list' DO UPDATE SET due_at = known.due_at
    RETURNING id INTO list;
    UPDATE provider_notice SET list_id = list WHERE crm_id = crm AND list_id = erased.id AND list IS DISTINCT FROM erased.id;
  END LOOP;
  -- The mails themselves say nothing of a person, and that they were sent.
  DELETE FROM sandbox_mail WHERE crm_id = crm AND mail_id = ANY (lists);
  RETURN NULL;
END
$$;
