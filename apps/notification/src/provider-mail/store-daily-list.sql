-- Stores the list of a day that has been written, in place of its row of provider_notice, unless that is no longer leased to whoever has written it, or
-- somebody in it was erased by now: then it is written again. The list of a deleted provider is not stored; the deletion removes the row. Each person is an entry
-- of the list, by which an erasure finds the mails that name the person. Erasures of the CRM share a lock that this one has alone (erase-from-lists.sql): one is
-- either found here, or finds the entries. It takes no lock of a customer.
--
-- Request: crmId, id, lease; mail (the request of store_mail) and persons, customerId and participationId of each, absent if there is nothing to send.
-- Answer: whether the list was stored.
CREATE OR REPLACE FUNCTION store_daily_list(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  crm text := request ->> 'crmId';
  list provider_notice%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(format('daily lists %s', crm), 0));
  -- Before the entries are inserted: a deletion does not see entries that are not committed.
  IF provider_is_erased(crm, (SELECT provider_id FROM provider_notice WHERE crm_id = crm AND id = (request ->> 'id')::uuid)) THEN RETURN 'false'; END IF;
  SELECT * INTO list FROM provider_notice WHERE crm_id = crm AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  IF EXISTS (
    SELECT FROM jsonb_to_recordset(request -> 'persons') AS person ("customerId" uuid)
      JOIN erased_customer AS erased ON erased.crm_id = crm AND erased.customer_id = person."customerId"
  ) THEN
    UPDATE provider_notice SET lease = NULL, due_at = now() WHERE crm_id = crm AND id = list.id;
    RETURN 'false';
  END IF;

  -- Also the entries that are left of a list that is written again.
  DELETE FROM provider_notice WHERE crm_id = crm AND (id = list.id OR list_id = list.id);
  -- The event was repeated while the list was being stored.
  IF NOT request ? 'mail' OR EXISTS (
    SELECT FROM mail WHERE crm_id = crm AND event_id = list.event_id AND about_id = list.about_id AND template = list.template
  ) THEN RETURN 'true'; END IF;
  INSERT INTO provider_notice (crm_id, event_id, recipient, template, about_id, version, participation_ids, customer_id, provider_id, actor, request_id, state, list_id, day)
  SELECT crm, list.event_id, list.recipient, list.template, "participationId", 0, ARRAY["participationId"], "customerId", list.provider_id, list.actor, list.request_id,
         'listed', list.id, list.day
    FROM jsonb_to_recordset(request -> 'persons') AS person ("customerId" uuid, "participationId" uuid);
  PERFORM store_mail(request -> 'mail');
  RETURN 'true';
END
$$;
