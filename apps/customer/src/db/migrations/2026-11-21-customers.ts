import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE customer (
      crm_id text NOT NULL,
      id uuid NOT NULL DEFAULT uuidv7(),
      provider_id uuid NOT NULL,
      provider_reference text NOT NULL,
      reference text NOT NULL,
      user_name text NOT NULL,
      email text,
      mobile text,
      note text,
      language text,
      version integer NOT NULL DEFAULT 1,
      created_at timestamptz NOT NULL DEFAULT now(),
      updated_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, id),
      CONSTRAINT customer_reference_key UNIQUE (crm_id, provider_reference, reference)
    )`.execute(db);
  await sql`
    CREATE TABLE erasure (
      crm_id text NOT NULL,
      id uuid NOT NULL DEFAULT uuidv7(),
      customer_id uuid NOT NULL,
      state text NOT NULL DEFAULT 'checking' CHECK (state IN ('checking', 'requested', 'complete')),
      ignore_future_appointments boolean NOT NULL,
      notice bytea,
      requested_at timestamptz NOT NULL DEFAULT now(),
      published_at timestamptz NOT NULL DEFAULT now(),
      completed_at timestamptz,
      PRIMARY KEY (crm_id, id),
      CONSTRAINT erasure_customer_key UNIQUE (crm_id, customer_id)
    )`.execute(db);
  await sql`CREATE INDEX erasure_open ON erasure (published_at) WHERE state <> 'complete'`.execute(db);
  await sql`CREATE INDEX erasure_completed ON erasure (completed_at) WHERE state = 'complete'`.execute(db);
  await sql`CREATE INDEX erasure_notice ON erasure (requested_at) WHERE notice IS NOT NULL`.execute(db);
  await sql`
    CREATE TABLE erasure_confirmation (
      crm_id text NOT NULL,
      erasure_id uuid NOT NULL,
      service text NOT NULL,
      confirmed_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, erasure_id, service)
    )`.execute(db);
}
