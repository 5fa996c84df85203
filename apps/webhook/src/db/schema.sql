CREATE TABLE audit_entry (
  id uuid NOT NULL DEFAULT uuidv7(),
  recorded_at timestamp with time zone NOT NULL DEFAULT now(),
  operator text NOT NULL,
  action text NOT NULL,
  target text NOT NULL,
  request_id text NOT NULL,
  CONSTRAINT audit_entry_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_entry_recorded_at ON public.audit_entry USING btree (recorded_at);

CREATE TABLE dead_letter (
  consumer text NOT NULL,
  event_id uuid NOT NULL,
  subject text NOT NULL,
  payload bytea NOT NULL,
  request_id text NOT NULL,
  error text NOT NULL,
  attempts integer NOT NULL,
  failed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT dead_letter_pkey PRIMARY KEY (consumer, event_id)
);

CREATE TABLE event (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  type text NOT NULL,
  subject_id uuid NOT NULL,
  version integer NOT NULL,
  provider_id uuid,
  appointment_id uuid,
  customer_id uuid,
  state text,
  previous_state text,
  cause text,
  actor text NOT NULL,
  sequence bigint NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  previous_appointment_id uuid,
  capacity bigint,
  exempt boolean,
  CONSTRAINT event_pkey PRIMARY KEY (crm_id, sequence),
  CONSTRAINT event_crm_id_id_key UNIQUE (crm_id, id)
);
CREATE INDEX event_recorded_at ON public.event USING btree (recorded_at);

CREATE TABLE event_counter (
  crm_id text NOT NULL,
  last_sequence bigint NOT NULL,
  CONSTRAINT event_counter_pkey PRIMARY KEY (crm_id)
);

CREATE TABLE event_failure (
  consumer text NOT NULL,
  event_id uuid NOT NULL,
  failures integer NOT NULL,
  failed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT event_failure_pkey PRIMARY KEY (consumer, event_id)
);
CREATE INDEX event_failure_failed_at ON public.event_failure USING btree (failed_at);

CREATE TABLE idempotency_key (
  crm_id text NOT NULL,
  key_hash bytea NOT NULL,
  fingerprint bytea NOT NULL,
  resource_ids uuid[] NOT NULL,
  created boolean NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT idempotency_key_pkey PRIMARY KEY (crm_id, key_hash)
);
CREATE INDEX idempotency_key_created_at ON public.idempotency_key USING btree (created_at);
CREATE INDEX idempotency_key_resources ON public.idempotency_key USING gin (resource_ids);

CREATE TABLE inbox (
  consumer text NOT NULL,
  event_id uuid NOT NULL,
  processed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT inbox_pkey PRIMARY KEY (consumer, event_id)
);
CREATE INDEX inbox_processed_at ON public.inbox USING btree (processed_at);

CREATE TABLE incoming_event (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  type text NOT NULL,
  subject_id uuid NOT NULL,
  version integer NOT NULL,
  provider_id uuid,
  appointment_id uuid,
  customer_id uuid,
  state text,
  previous_state text,
  cause text,
  actor text NOT NULL,
  arrived_at timestamp with time zone NOT NULL DEFAULT now(),
  previous_appointment_id uuid,
  capacity bigint,
  exempt boolean,
  ordinal bigint,
  previous_ordinal bigint,
  CONSTRAINT incoming_event_pkey PRIMARY KEY (crm_id, id)
);
CREATE INDEX incoming_event_id ON public.incoming_event USING btree (id);
CREATE INDEX incoming_event_subject ON public.incoming_event USING btree (crm_id, subject_id, version);

CREATE TABLE latest_version (
  crm_id text NOT NULL,
  subject_id uuid NOT NULL,
  version integer NOT NULL,
  gone_at timestamp with time zone,
  ordinal bigint NOT NULL DEFAULT 0,
  CONSTRAINT latest_version_pkey PRIMARY KEY (crm_id, subject_id)
);
CREATE INDEX latest_version_gone_at ON public.latest_version USING btree (gone_at) WHERE (gone_at IS NOT NULL);

CREATE TABLE outbox (
  id uuid NOT NULL DEFAULT uuidv7(),
  subject text NOT NULL,
  type text,
  payload bytea,
  request_id text NOT NULL,
  traceparent text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  sent_at timestamp with time zone,
  data json,
  CONSTRAINT outbox_pkey PRIMARY KEY (id),
  CONSTRAINT outbox_data_or_message CHECK ((num_nonnulls(data, payload) = 1))
);
CREATE INDEX outbox_sent_at ON public.outbox USING btree (sent_at);
CREATE INDEX outbox_unsent ON public.outbox USING btree (id) WHERE (sent_at IS NULL);

CREATE TABLE outbox_position (
  id boolean NOT NULL DEFAULT true,
  stream_created text NOT NULL,
  sequence bigint NOT NULL,
  event_id uuid NOT NULL,
  refill_after uuid,
  refill_until timestamp with time zone,
  CONSTRAINT outbox_position_pkey PRIMARY KEY (id),
  CONSTRAINT outbox_position_check CHECK (((refill_after IS NULL) = (refill_until IS NULL))),
  CONSTRAINT outbox_position_id_check CHECK (id)
);

CREATE TABLE removed_event (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  sequence bigint NOT NULL,
  CONSTRAINT removed_event_pkey PRIMARY KEY (crm_id)
);

CREATE TABLE webhook (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  reference text NOT NULL,
  url text NOT NULL,
  types text[] NOT NULL,
  provider_id uuid,
  ignore_actors text[] NOT NULL,
  secret text NOT NULL,
  previous_secret text,
  previous_secret_until timestamp with time zone,
  "position" bigint NOT NULL,
  state text NOT NULL DEFAULT 'pending'::text,
  failed_attempts integer NOT NULL DEFAULT 0,
  due_at timestamp with time zone NOT NULL DEFAULT now(),
  lease uuid,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  secret_id uuid,
  CONSTRAINT webhook_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT webhook_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'idle'::text, 'disabled'::text]))),
  CONSTRAINT webhook_reference_key UNIQUE (crm_id, reference)
);
CREATE INDEX webhook_due_at ON public.webhook USING btree (crm_id, due_at) WHERE (state = 'pending'::text);
CREATE INDEX webhook_lease ON public.webhook USING btree (lease) WHERE (state = 'pending'::text);

CREATE TABLE webhook_attempt (
  crm_id text NOT NULL,
  webhook_id uuid NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  event_id uuid NOT NULL,
  event_type text NOT NULL,
  status integer,
  error text,
  duration_ms integer NOT NULL,
  attempted_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT webhook_attempt_pkey PRIMARY KEY (crm_id, webhook_id, id),
  CONSTRAINT webhook_attempt_crm_id_webhook_id_fkey FOREIGN KEY (crm_id, webhook_id) REFERENCES webhook(crm_id, id) ON DELETE CASCADE
);
CREATE INDEX webhook_attempt_attempted_at ON public.webhook_attempt USING btree (attempted_at);

CREATE TABLE webhook_test (
  crm_id text NOT NULL,
  event_id uuid NOT NULL,
  started_at timestamp with time zone NOT NULL DEFAULT now(),
  ended boolean NOT NULL DEFAULT false,
  CONSTRAINT webhook_test_pkey PRIMARY KEY (crm_id, event_id)
);

CREATE OR REPLACE FUNCTION public.call_once(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_key bytea := decode(request ->> 'keyHash', 'hex');
  the_fingerprint bytea := decode(request ->> 'fingerprint', 'hex');
  kept idempotency_key%ROWTYPE;
  answer jsonb;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended((request ->> 'keyHash') || ' ' || the_crm, 0)) THEN RETURN jsonb_build_object('key', 'in_flight'); END IF;

  SELECT * INTO kept FROM idempotency_key
   WHERE crm_id = the_crm AND key_hash = the_key AND created_at > now() - (request ->> 'lifetime')::interval;
  IF kept.fingerprint <> the_fingerprint THEN RETURN jsonb_build_object('key', 'reused'); END IF;
  IF kept.fingerprint = the_fingerprint THEN
    RETURN jsonb_build_object('key', 'used', 'resourceIds', kept.resource_ids, 'created', kept.created);
  END IF;

  EXECUTE format('SELECT %I($1)', request ->> 'name') INTO answer USING request -> 'request';
  IF answer ->> 'id' IS NOT NULL THEN
    INSERT INTO idempotency_key (crm_id, key_hash, fingerprint, resource_ids, created)
    VALUES (the_crm, the_key, the_fingerprint, ARRAY[(answer ->> 'id')::uuid], (answer ->> 'created')::boolean)
    ON CONFLICT (crm_id, key_hash) DO UPDATE
       SET fingerprint = excluded.fingerprint, resource_ids = excluded.resource_ids, created = excluded.created, created_at = excluded.created_at;
  END IF;
  RETURN jsonb_build_object('key', 'new', 'answer', answer);
END
$function$;

CREATE OR REPLACE FUNCTION public.place_events(request jsonb)
 RETURNS void
 LANGUAGE sql
AS $function$
  SELECT record_events(jsonb_build_object('events', jsonb_agg(jsonb_build_object(
           'crmId', crm_id, 'id', id, 'type', type, 'subjectId', subject_id, 'version', version, 'providerId', provider_id, 'appointmentId', appointment_id,
           'previousAppointmentId', previous_appointment_id, 'customerId', customer_id, 'state', state, 'previousState', previous_state, 'capacity', capacity,
           'exempt', exempt, 'cause', cause, 'actor', actor, 'ordinal', ordinal, 'previousOrdinal', previous_ordinal, 'waits', false) ORDER BY place)))
    FROM ROWS FROM (jsonb_to_recordset(request -> 'events') AS (crm_id text, id uuid)) WITH ORDINALITY AS next (crm_id, id, place)
    JOIN incoming_event USING (crm_id, id)
$function$;

CREATE OR REPLACE FUNCTION public.read_latest_versions(request jsonb)
 RETURNS TABLE("crmId" text, "subjectId" uuid, version integer, ordinal bigint)
 LANGUAGE plpgsql
 STABLE
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  RETURN QUERY SELECT latest.crm_id, latest.subject_id, latest.version, latest.ordinal
    FROM jsonb_to_recordset(request -> 'subjects') AS subject ("crmId" text, "subjectId" uuid)
    JOIN latest_version AS latest ON latest.crm_id = subject."crmId" AND latest.subject_id = subject."subjectId";
END
$function$;

CREATE OR REPLACE FUNCTION public.record_events(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
AS $function$
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
$function$;
