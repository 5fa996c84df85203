import { type Kysely, sql } from 'kysely';

const columns = sql`
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
  actor text NOT NULL`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE TABLE event_counter (crm_id text PRIMARY KEY, last_sequence bigint NOT NULL)`.execute(db);
  await sql`
    CREATE TABLE event (
      ${columns},
      sequence bigint NOT NULL,
      recorded_at timestamptz NOT NULL,
      PRIMARY KEY (crm_id, sequence),
      UNIQUE (crm_id, id)
    )`.execute(db);
  await sql`CREATE INDEX event_recorded_at ON event (recorded_at)`.execute(db);
  await sql`
    CREATE TABLE incoming_event (
      ${columns},
      arrived_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, id)
    )`.execute(db);
  await sql`CREATE INDEX incoming_event_id ON incoming_event (id)`.execute(db);
  await sql`CREATE INDEX incoming_event_subject ON incoming_event (crm_id, subject_id, version)`.execute(db);
  await sql`
    CREATE TABLE latest_version (
      crm_id text NOT NULL,
      subject_id uuid NOT NULL,
      version integer NOT NULL,
      gone_at timestamptz,
      PRIMARY KEY (crm_id, subject_id)
    )`.execute(db);
  await sql`CREATE INDEX latest_version_gone_at ON latest_version (gone_at) WHERE gone_at IS NOT NULL`.execute(db);
}
