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
  CONSTRAINT event_pkey PRIMARY KEY (crm_id, sequence),
  CONSTRAINT event_crm_id_id_key UNIQUE (crm_id, id)
);
CREATE INDEX event_recorded_at ON public.event USING btree (recorded_at);

CREATE TABLE event_counter (
  crm_id text NOT NULL,
  last_sequence bigint NOT NULL,
  CONSTRAINT event_counter_pkey PRIMARY KEY (crm_id)
);

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
  CONSTRAINT incoming_event_pkey PRIMARY KEY (crm_id, id)
);
CREATE INDEX incoming_event_id ON public.incoming_event USING btree (id);
CREATE INDEX incoming_event_subject ON public.incoming_event USING btree (crm_id, subject_id, version);

CREATE TABLE latest_version (
  crm_id text NOT NULL,
  subject_id uuid NOT NULL,
  version integer NOT NULL,
  gone_at timestamp with time zone,
  CONSTRAINT latest_version_pkey PRIMARY KEY (crm_id, subject_id)
);
CREATE INDEX latest_version_gone_at ON public.latest_version USING btree (gone_at) WHERE (gone_at IS NOT NULL);

CREATE TABLE outbox (
  id uuid NOT NULL DEFAULT uuidv7(),
  subject text NOT NULL,
  type text NOT NULL,
  payload bytea NOT NULL,
  request_id text NOT NULL,
  traceparent text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  sent_at timestamp with time zone,
  CONSTRAINT outbox_pkey PRIMARY KEY (id)
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

CREATE OR REPLACE FUNCTION public.sequence_events(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  longest_wait CONSTANT interval := make_interval(secs => (request ->> 'waitSeconds')::float8);
  moved integer;
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
  )
  DELETE FROM incoming_event USING ready WHERE incoming_event.crm_id = ready.crm_id AND incoming_event.id = ready.id;
  GET DIAGNOSTICS moved = ROW_COUNT;
  RETURN moved;
END
$function$;
