-- What writes the feed. record-events.ts decides about the order, from what read_latest_versions answers.

-- The last numbers of subjects in the feed.
--
-- Request: subjects, an array of { crmId, subjectId }.
-- Answer: one row for each that is known: its last version, and for an appointment the last ordinal.
CREATE OR REPLACE FUNCTION read_latest_versions(request jsonb) RETURNS TABLE ("crmId" text, "subjectId" uuid, version integer, ordinal bigint)
LANGUAGE plpgsql STABLE SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY SELECT latest.crm_id, latest.subject_id, latest.version, latest.ordinal
    FROM jsonb_to_recordset(request -> 'subjects') AS subject ("crmId" text, "subjectId" uuid)
    JOIN latest_version AS latest ON latest.crm_id = subject."crmId" AND latest.subject_id = subject."subjectId";
END
$$;

-- Writes events to the feed, where each gets the next sequence of its CRM, and keeps those that wait for others in incoming_event. One transaction at a time does so,
-- so sequences become visible in their order; it ends with the statement, so no process that stands still can hold it up.
--
-- What decided about the order may have read the numbers long before: they only rise, so an event whose predecessors were in the feed then can have its place now.
--
-- Request: events, with the columns of incoming_event in camelCase, and waits: the event has no place yet. The others are in the order of the sequences.
-- Answer:
--   repeated    the ids of the events that were in the feed before, or were waiting and still are: they are not written again
--   hasWaiting  whether events are waiting
-- Webhooks of the CRMs that had nothing to deliver become due.
CREATE OR REPLACE FUNCTION record_events(request jsonb) RETURNS jsonb
LANGUAGE plpgsql SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
  crms text[];
  repeated uuid[];
BEGIN
  -- The next statement sees what was committed before the lock was granted.
  PERFORM pg_advisory_xact_lock(hashtextextended('sequence_events', 0));
  WITH given AS MATERIALIZED (
    SELECT given.*, event.id IS NOT NULL AS is_recorded
      FROM ROWS FROM (jsonb_to_recordset(request -> 'events') AS (
             "crmId" text, id uuid, type text, "subjectId" uuid, version integer, "providerId" uuid, "appointmentId" uuid, "previousAppointmentId" uuid,
             "customerId" uuid, state text, "previousState" text, capacity bigint, exempt boolean, cause text, actor text, ordinal bigint, "previousOrdinal" bigint,
             waits boolean)) WITH ORDINALITY AS given (
             crm_id, id, type, subject_id, version, provider_id, appointment_id, previous_appointment_id,
             customer_id, state, previous_state, capacity, exempt, cause, actor, ordinal, previous_ordinal,
             waits, place)
      -- A join, unlike EXISTS, for which the whole index of a small table would be read.
      LEFT JOIN event ON event.crm_id = given.crm_id AND event.id = given.id
  ), staged AS (
    INSERT INTO incoming_event (
      crm_id, id, type, subject_id, version, provider_id, appointment_id, previous_appointment_id, customer_id, state, previous_state, capacity, exempt, cause, actor,
      ordinal, previous_ordinal)
    SELECT crm_id, id, type, subject_id, version, provider_id, appointment_id, previous_appointment_id, customer_id, state, previous_state, capacity, exempt, cause,
           actor, ordinal, previous_ordinal
      FROM given WHERE waits AND NOT is_recorded
    ON CONFLICT DO NOTHING
    RETURNING crm_id, id
  ), unstaged AS (
    DELETE FROM incoming_event AS incoming USING given
     WHERE incoming.crm_id = given.crm_id AND incoming.id = given.id AND (is_recorded OR NOT waits)
  ), placed AS MATERIALIZED (
    SELECT * FROM given WHERE NOT waits AND NOT is_recorded
  ), counted AS (
    INSERT INTO event_counter AS counter (crm_id, last_sequence)
    SELECT crm_id, count(*) FROM placed GROUP BY crm_id
    ON CONFLICT (crm_id) DO UPDATE SET last_sequence = counter.last_sequence + excluded.last_sequence
    RETURNING crm_id, last_sequence
  ), recorded AS (
    INSERT INTO event (
      crm_id, sequence, id, type, subject_id, version, provider_id, appointment_id, previous_appointment_id, customer_id, state, previous_state, capacity, exempt,
      cause, actor, recorded_at)
    SELECT crm_id, last_sequence + 1 - row_number() OVER (PARTITION BY crm_id ORDER BY place DESC), id, type, subject_id, version, provider_id, appointment_id,
           previous_appointment_id, customer_id, state, previous_state, capacity, exempt, cause, actor, clock_timestamp()
      FROM placed JOIN counted USING (crm_id)
  ), remembered AS (
    INSERT INTO latest_version AS latest (crm_id, subject_id, version, ordinal, gone_at)
    SELECT crm_id, subject_id, max(version), max(ordinal), max(gone_at)
      FROM (
        SELECT crm_id, subject_id, version, 0 AS ordinal, CASE WHEN type IN ('participation.removed', 'appointment.deleted', 'customer.deleted') THEN now() END AS gone_at
          FROM placed WHERE version > 0
        UNION ALL
        SELECT crm_id, coalesce(appointment_id, subject_id), 0, ordinal, NULL FROM placed WHERE ordinal IS NOT NULL
        UNION ALL
        SELECT crm_id, previous_appointment_id, 0, previous_ordinal, NULL FROM placed WHERE previous_ordinal IS NOT NULL)
     GROUP BY crm_id, subject_id
    ON CONFLICT (crm_id, subject_id) DO UPDATE SET version = greatest(latest.version, excluded.version), ordinal = greatest(latest.ordinal, excluded.ordinal),
      gone_at = coalesce(latest.gone_at, excluded.gone_at)
  )
  SELECT array_agg(DISTINCT crm_id) FILTER (WHERE NOT waits AND NOT is_recorded),
         array_agg(id) FILTER (WHERE is_recorded OR waits AND NOT EXISTS (SELECT FROM staged WHERE staged.crm_id = given.crm_id AND staged.id = given.id))
    INTO crms, repeated
    FROM given;

  -- A delivery that decides that nothing is left holds event_counter, so it has committed, or will see these events.
  UPDATE webhook SET state = 'pending', due_at = now() WHERE crm_id = ANY (crms) AND state = 'idle';
  RETURN jsonb_build_object('repeated', coalesce(to_jsonb(repeated), '[]'), 'hasWaiting', EXISTS (SELECT FROM incoming_event));
END
$$;

-- For processes of the previous version, which move events from incoming_event to event: request is { events }, an array of { crm_id, id } in the order of the
-- sequences, and the caller holds the lock of record_events.
CREATE OR REPLACE FUNCTION place_events(request jsonb) RETURNS void LANGUAGE sql AS $$
  SELECT record_events(jsonb_build_object('events', jsonb_agg(jsonb_build_object(
           'crmId', crm_id, 'id', id, 'type', type, 'subjectId', subject_id, 'version', version, 'providerId', provider_id, 'appointmentId', appointment_id,
           'previousAppointmentId', previous_appointment_id, 'customerId', customer_id, 'state', state, 'previousState', previous_state, 'capacity', capacity,
           'exempt', exempt, 'cause', cause, 'actor', actor, 'ordinal', ordinal, 'previousOrdinal', previous_ordinal, 'waits', false) ORDER BY place)))
    FROM ROWS FROM (jsonb_to_recordset(request -> 'events') AS (crm_id text, id uuid)) WITH ORDINALITY AS next (crm_id, id, place)
    JOIN incoming_event USING (crm_id, id)
$$;
