-- The tables of webhook. schema.ts says what the columns mean. Run once, and never changed: a change is a migration.

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
  arrived_at timestamptz NOT NULL DEFAULT now(),
  previous_appointment_id uuid,
  capacity bigint,
  exempt boolean,
  ordinal bigint,
  previous_ordinal bigint,
  PRIMARY KEY (crm_id, id)
);
CREATE INDEX incoming_event_id ON incoming_event (id);
CREATE INDEX incoming_event_subject ON incoming_event (crm_id, subject_id, version);

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
  recorded_at timestamptz NOT NULL,
  previous_appointment_id uuid,
  capacity bigint,
  exempt boolean,
  PRIMARY KEY (crm_id, sequence),
  UNIQUE (crm_id, id)
);
CREATE INDEX event_recorded_at ON event (recorded_at);

CREATE TABLE event_counter (
  crm_id text PRIMARY KEY,
  last_sequence bigint NOT NULL
);

CREATE TABLE removed_event (
  crm_id text PRIMARY KEY,
  id uuid NOT NULL,
  sequence bigint NOT NULL
);

CREATE TABLE latest_version (
  crm_id text NOT NULL,
  subject_id uuid NOT NULL,
  version integer NOT NULL,
  gone_at timestamptz,
  ordinal bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (crm_id, subject_id)
);
CREATE INDEX latest_version_gone_at ON latest_version (gone_at) WHERE gone_at IS NOT NULL;

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
  previous_secret_until timestamptz,
  position bigint NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'idle', 'disabled')),
  failed_attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT now(),
  lease uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  secret_id uuid,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT webhook_reference_key UNIQUE (crm_id, reference)
);
CREATE INDEX webhook_due_at ON webhook (crm_id, due_at) WHERE state = 'pending';
CREATE INDEX webhook_lease ON webhook (lease) WHERE state = 'pending';

CREATE TABLE webhook_attempt (
  crm_id text NOT NULL,
  webhook_id uuid NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  event_id uuid NOT NULL,
  event_type text NOT NULL,
  status integer,
  error text,
  duration_ms integer NOT NULL,
  attempted_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, webhook_id, id),
  FOREIGN KEY (crm_id, webhook_id) REFERENCES webhook (crm_id, id) ON DELETE CASCADE
);
CREATE INDEX webhook_attempt_attempted_at ON webhook_attempt (attempted_at);

CREATE TABLE webhook_test (
  crm_id text NOT NULL,
  event_id uuid NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  ended boolean NOT NULL DEFAULT false,
  PRIMARY KEY (crm_id, event_id)
);
