import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
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
      PRIMARY KEY (crm_id, id),
      CONSTRAINT webhook_reference_key UNIQUE (crm_id, reference)
    )`.execute(db);
  await sql`CREATE INDEX webhook_due_at ON webhook (crm_id, due_at) WHERE state = 'pending'`.execute(db);
  await sql`CREATE INDEX webhook_lease ON webhook (lease) WHERE state = 'pending'`.execute(db);
  await sql`
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
    )`.execute(db);
  await sql`CREATE INDEX webhook_attempt_attempted_at ON webhook_attempt (attempted_at)`.execute(db);
}
