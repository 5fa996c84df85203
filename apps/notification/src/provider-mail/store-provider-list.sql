-- Stores the mail with a list that has been written, in place of its row of provider_notice, unless that is no longer leased to whoever has written it, or its
-- entries are other ones by now: then it is written again. That of a deleted provider is not stored; the deletion removes the row. The entries stay, so that the
-- erasure of a person finds the mails that name the person.
--
-- Request: crmId, id, lease; entryIds: all of them; mail (the request of store_mail), absent if there is nothing to send.
-- Answer: whether the list was stored.
CREATE OR REPLACE FUNCTION store_provider_list(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  crm text := request ->> 'crmId';
  list uuid := (request ->> 'id')::uuid;
  present_ids uuid[];
BEGIN
  IF provider_is_erased(crm, (SELECT provider_id FROM provider_notice WHERE crm_id = crm AND id = list)) THEN RETURN 'false'; END IF;
  -- Who adds an entry holds a lock on this row, who removes one a lock on that entry.
  PERFORM FROM provider_notice WHERE crm_id = crm AND id = list AND lease = (request ->> 'lease')::uuid FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  SELECT array_agg(id) INTO present_ids FROM (SELECT id FROM provider_notice WHERE crm_id = crm AND list_id = list ORDER BY id FOR SHARE) AS entry;
  IF present_ids IS DISTINCT FROM (SELECT array_agg(id::uuid ORDER BY id::uuid) FROM jsonb_array_elements_text(request -> 'entryIds') AS given (id)) THEN
    UPDATE provider_notice SET lease = NULL, due_at = now() WHERE crm_id = crm AND id = list;
    RETURN 'false';
  END IF;
  DELETE FROM provider_notice WHERE crm_id = crm AND id = list;
  IF request ? 'mail' THEN PERFORM store_mail(request -> 'mail'); END IF;
  RETURN 'true';
END
$$;
