-- Moves events from incoming_event to event, where each gets the next sequence of its CRM, in the order of the ids, which begin with the time. But the events
-- of a subject are moved in the order of their versions, one in each round, and after the first events of the appointment and the customer that they name.
-- An event whose predecessor is missing waits for it, but not for ever.
--
-- Request: limit, the most events to be moved; waitSeconds, how long an event waits.
-- Answer: how many were moved. Webhooks of their CRMs that had nothing to deliver become due.
CREATE OR REPLACE FUNCTION sequence_events(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  longest_wait CONSTANT interval := make_interval(secs => (request ->> 'waitSeconds')::float8);
  moved integer;
  crms text[];
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
  ), counted AS (
    INSERT INTO event_counter AS counter (crm_id, last_sequence)
    SELECT crm_id, count(*) FROM ready GROUP BY crm_id
    ON CONFLICT (crm_id) DO UPDATE SET last_sequence = counter.last_sequence + excluded.last_sequence
    RETURNING crm_id, last_sequence
  ), recorded AS (
    INSERT INTO event (crm_id, sequence, id, type, subject_id, version, provider_id, appointment_id, customer_id, state, previous_state, cause, actor, recorded_at)
    SELECT crm_id, last_sequence + 1 - row_number() OVER (PARTITION BY crm_id ORDER BY id DESC), id, type, subject_id, version, provider_id, appointment_id,
           customer_id, state, previous_state, cause, actor, clock_timestamp()
      FROM ready JOIN counted USING (crm_id)
  ), remembered AS (
    INSERT INTO latest_version AS latest (crm_id, subject_id, version, gone_at)
    SELECT DISTINCT ON (crm_id, subject_id)
           crm_id, subject_id, version, CASE WHEN type IN ('participation.removed', 'appointment.deleted', 'customer.deleted') THEN now() END
      FROM ready
     WHERE version > 0
     ORDER BY crm_id, subject_id, version DESC
    ON CONFLICT (crm_id, subject_id) DO UPDATE SET version = excluded.version, gone_at = excluded.gone_at WHERE excluded.version > latest.version
  ), removed AS (
    DELETE FROM incoming_event USING ready WHERE incoming_event.crm_id = ready.crm_id AND incoming_event.id = ready.id RETURNING ready.crm_id
  )
  SELECT count(*), array_agg(DISTINCT crm_id) INTO moved, crms FROM removed;

  -- A delivery that decides that nothing is left holds event_counter, so it has committed, or will see these events.
  UPDATE webhook SET state = 'pending', due_at = now() WHERE crm_id = ANY (crms) AND state = 'idle';
  RETURN moved;
END
$$;
