-- Removes mails that need not be written, because a later one about the same thing says what is true, and records them as superseded, unless
-- their provider was deleted.
CREATE OR REPLACE FUNCTION supersede_unwritten_mails(crm text, ids uuid[]) RETURNS void LANGUAGE sql AS $$
  WITH superseded AS (
    DELETE FROM unwritten_mail WHERE crm_id = crm AND id = ANY (ids) RETURNING *
  )
  INSERT INTO mail (crm_id, id, event_id, about_id, version, template, customer_id, provider_id, actor, calendar_method, request_id, traceparent, created_at,
    state, last_error, finished_at)
  SELECT crm_id, id, event_id, about_id, version, template, customer_id, provider_id, actor, calendar_method, request_id, traceparent, created_at,
    'failed', 'superseded', now()
    FROM superseded
   WHERE NOT provider_is_erased(crm_id, provider_id)
  ON CONFLICT ON CONSTRAINT mail_intent_key DO NOTHING
$$;
