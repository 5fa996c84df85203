import { type Kysely, sql } from 'kysely';

/** Mails that are to be written, in a table of their own: the previous version would try to send them. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE unwritten_mail (
      crm_id text NOT NULL,
      id uuid NOT NULL DEFAULT uuidv7(),
      event_id uuid NOT NULL,
      about_id uuid NOT NULL,
      version integer NOT NULL,
      template text NOT NULL,
      customer_id uuid NOT NULL,
      provider_id uuid,
      actor text NOT NULL,
      calendar_method text,
      request_id text NOT NULL,
      traceparent text,
      state text NOT NULL DEFAULT 'pending' CHECK (state = 'pending'),
      attempts integer NOT NULL DEFAULT 0,
      due_at timestamptz NOT NULL DEFAULT now(),
      lease uuid,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, id),
      CONSTRAINT unwritten_mail_intent_key UNIQUE (crm_id, event_id, about_id, template)
    )`.execute(db);
  await sql`CREATE INDEX unwritten_mail_due ON unwritten_mail (crm_id, due_at) WHERE state = 'pending'`.execute(db);
  await sql`CREATE INDEX unwritten_mail_order ON unwritten_mail (crm_id, about_id, version)`.execute(db);
  await sql`CREATE INDEX unwritten_mail_lease ON unwritten_mail (lease) WHERE state = 'pending' AND lease IS NOT NULL`.execute(
    db,
  );
  await sql`CREATE INDEX unwritten_mail_customer ON unwritten_mail (crm_id, customer_id)`.execute(db);
  await sql`CREATE INDEX unwritten_mail_created ON unwritten_mail (created_at)`.execute(db);
}
