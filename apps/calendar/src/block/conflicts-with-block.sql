-- Which appointments are in a block that has been stored (interface 15): those of its resource that are not cancelled, overlap it, and are not over.
--
-- Whoever books looks for blocks behind its locks of timeslots and appointments (claim-place.sql). A booking that has not seen this block holds them still, so this waits
-- for it, with the same locks in the same order. One that has seen it was rejected.
--
-- Request: crmId and the id of the block.
-- Answer: see conflicts_of; by start. Null if the block was deleted.
CREATE OR REPLACE FUNCTION conflicts_with_block(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  block resource_block%ROWTYPE;
  locked uuid[];
  present timestamptz := scheduling_now(the_crm);
BEGIN
  SELECT * INTO block FROM resource_block WHERE crm_id = the_crm AND id = (request ->> 'id')::uuid;
  IF NOT FOUND THEN RETURN NULL; END IF;
  locked := ARRAY(SELECT id FROM overlapping_timeslots(the_crm, block.provider_id, block.resource_reference, block.starts_at, block.ends_at));
  PERFORM FROM timeslot WHERE crm_id = the_crm AND id = ANY (locked) AND ends_at > present ORDER BY id FOR SHARE;
  locked := ARRAY(SELECT id FROM overlapping_appointments(the_crm, block.provider_id, block.resource_reference, block.starts_at, block.ends_at));
  PERFORM FROM appointment WHERE crm_id = the_crm AND id = ANY (locked) AND ends_at > present ORDER BY id FOR SHARE;

  RETURN conflicts_of(ARRAY(
    SELECT reference
      FROM overlapping_appointments(the_crm, block.provider_id, block.resource_reference, block.starts_at, block.ends_at) AS appointment
     WHERE ends_at > present AND (when_empty IS NULL OR NOT (SELECT abandoned FROM occupancy(appointment, present)))
     ORDER BY starts_at, id));
END
$$;
