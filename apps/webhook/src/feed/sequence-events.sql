-- Called by processes of versions before 2027-01-01, which run beside later ones during a rollout, and after a rollback; see src/feed/sequence-events.ts.
--
-- Moves events from incoming_event to event, where each gets the next sequence of its CRM, in the order of the ids, which begin with the time. But the events
-- of a subject are moved in the order of their versions, one in each round, and after the first events of the appointment and the customer that they name.
-- An event whose predecessor is missing waits for it, but not for ever.
--
-- Request: limit, the most events to be moved; waitSeconds, how long an event waits.
-- Answer: how many were moved.
CREATE OR REPLACE FUNCTION sequence_events(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  longest_wait CONSTANT interval := make_interval(secs => (request ->> 'waitSeconds')::float8);
  moved integer;
  next jsonb;
BEGIN
  -- One process at a time, so that sequences become visible in their order. What others have committed until now is visible to the next statement.
  PERFORM pg_advisory_xact_lock(hashtextextended('sequence_events', 0));

  WITH ready AS (
    SELECT incoming.*
      FROM incoming_event AS incoming LEFT JOIN latest_version AS latest USING (crm_id, subject_id)
     WHERE incoming.version = 0
        OR (incoming.version <= coalesce(latest.version, 0) + 1
            AND NOT EXISTS (SELECT FROM unnest(ARRAY[incoming.appointment_id, incoming.customer_id]) AS named (id)
                             WHERE named.id IS NOT NULL
                               -- The first event of what is older has come, or will not come.
                               AND uuid_extract_timestamp(named.id) > uuid_extract_timestamp(incoming.id) - longest_wait
                               AND NOT EXISTS (SELECT FROM latest_version WHERE crm_id = incoming.crm_id AND subject_id = named.id)))
        -- Any of the subject has waited long enough: then the first of them is next.
        OR (EXISTS (SELECT FROM incoming_event AS late
                     WHERE late.crm_id = incoming.crm_id AND late.subject_id = incoming.subject_id AND late.version > 0
                       AND late.arrived_at < clock_timestamp() - longest_wait)
            AND NOT EXISTS (SELECT FROM incoming_event AS earlier
                             WHERE earlier.crm_id = incoming.crm_id AND earlier.subject_id = incoming.subject_id
                               AND earlier.version > 0 AND earlier.version < incoming.version))
     ORDER BY incoming.id
     LIMIT (request ->> 'limit')::int
  )
  SELECT count(*), jsonb_build_object('events', jsonb_agg(jsonb_build_object('crm_id', crm_id, 'id', id) ORDER BY id)) INTO moved, next FROM ready;

  IF moved > 0 THEN PERFORM place_events(next); END IF;
  RETURN moved;
END
$$;
