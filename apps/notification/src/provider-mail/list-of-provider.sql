-- The id of the list of what a recipient of a provider was not told in an hour, which is made if there is none, or if it has been written already. It is locked, so that
-- it is not written before what is added to it is committed.
--
-- `entry` is the first one that was not told, `due` when the hour is over.
CREATE OR REPLACE FUNCTION list_of_provider(entry provider_notice, recipient_id uuid, due timestamptz) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  new_id uuid := uuidv7();
  list uuid;
BEGIN
  INSERT INTO provider_notice AS known (crm_id, id, event_id, recipient, template, about_id, version, provider_id, actor, request_id, due_at, recipient_id)
  VALUES (
    entry.crm_id, new_id, new_id, entry.recipient, 'provider-list',
    md5(format('%s %s %s', entry.provider_id, list_of_provider.recipient_id, due))::uuid,
    0, entry.provider_id, 'service', entry.request_id, due, list_of_provider.recipient_id)
  ON CONFLICT (crm_id, about_id) WHERE template = 'provider-list' DO UPDATE SET due_at = known.due_at
  RETURNING id INTO list;
  RETURN list;
END
$$;
