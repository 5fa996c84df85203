-- Moves events from incoming_event to event, where each gets the next sequence of its CRM. The caller is the only one that does so at this time.
--
-- Request: events, an array of { crm_id, id } in the order of the sequences.
-- Webhooks of their CRMs that had nothing to deliver become due.
CREATE OR REPLACE FUNCTION place_events(request jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  crms text[];
BEGIN
  WITH placed AS MATERIALIZED (
    SELECT incoming.*, place
      FROM ROWS FROM (jsonb_to_recordset(request -> 'events') AS (crm_id text, id uuid)) WITH ORDINALITY AS next (crm_id, id, place)
      JOIN incoming_event AS incoming USING (crm_id, id)
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
  ), removed AS (
    DELETE FROM incoming_event USING placed WHERE incoming_event.crm_id = placed.crm_id AND incoming_event.id = placed.id
  )
  SELECT array_agg(DISTINCT crm_id) INTO crms FROM placed;

  -- A delivery that decides that nothing is left holds event_counter, so it has committed, or will see these events.
  UPDATE webhook SET state = 'pending', due_at = now() WHERE crm_id = ANY (crms) AND state = 'idle';
END
$$;
