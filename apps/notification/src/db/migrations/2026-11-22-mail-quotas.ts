import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE mail ADD COLUMN held boolean NOT NULL DEFAULT false`.execute(db);
  await sql`CREATE INDEX mail_held ON mail (crm_id, recipient, due_at) WHERE state = 'pending' AND held`.execute(db);
  await sql`
    CREATE TABLE recent_mail (
      crm_id text NOT NULL,
      mail_id uuid NOT NULL,
      recipient_digest bytea NOT NULL,
      sent_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, mail_id),
      FOREIGN KEY (crm_id, mail_id) REFERENCES mail (crm_id, id) ON DELETE CASCADE
    )`.execute(db);
  await sql`CREATE INDEX recent_mail_recipient ON recent_mail (crm_id, recipient_digest, sent_at)`.execute(db);
}
