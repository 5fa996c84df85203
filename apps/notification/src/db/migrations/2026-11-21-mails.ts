import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE mail (
      crm_id text NOT NULL,
      id uuid NOT NULL DEFAULT uuidv7(),
      event_id uuid NOT NULL,
      about_id uuid NOT NULL,
      version integer NOT NULL,
      template text NOT NULL,
      customer_id uuid,
      erasure_id uuid,
      request_id text NOT NULL,
      traceparent text,
      state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'failed')),
      content jsonb,
      recipient text,
      attempts integer NOT NULL DEFAULT 0,
      uncertain boolean NOT NULL DEFAULT false,
      due_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz,
      lease uuid,
      last_error text,
      created_at timestamptz NOT NULL DEFAULT now(),
      finished_at timestamptz,
      PRIMARY KEY (crm_id, id),
      CONSTRAINT mail_intent_key UNIQUE (crm_id, event_id, about_id, template),
      CHECK ((state = 'pending') = (content IS NOT NULL) AND (state = 'pending') = (recipient IS NOT NULL))
    )`.execute(db);
  await sql`CREATE INDEX mail_due ON mail (crm_id, due_at) WHERE state = 'pending'`.execute(db);
  await sql`CREATE INDEX mail_order ON mail (crm_id, about_id, version) WHERE state = 'pending'`.execute(db);
  await sql`CREATE INDEX mail_customer ON mail (crm_id, customer_id)`.execute(db);
  await sql`CREATE INDEX mail_lease ON mail (lease) WHERE state = 'pending' AND lease IS NOT NULL`.execute(db);
  await sql`CREATE INDEX mail_erasure ON mail (crm_id, erasure_id) WHERE erasure_id IS NOT NULL`.execute(db);
  await sql`CREATE INDEX mail_finished ON mail (state, finished_at) WHERE state <> 'pending'`.execute(db);
  await sql`
    CREATE TABLE erased_customer (
      crm_id text NOT NULL,
      customer_id uuid NOT NULL,
      erased_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, customer_id)
    )`.execute(db);
}
