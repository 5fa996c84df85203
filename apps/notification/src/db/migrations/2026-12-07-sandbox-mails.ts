import { type Kysely, sql } from 'kysely';

/** What is kept of a mail of a sandbox goes with the row of the mail, and so with the erasure of its person. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE mail ADD COLUMN sandbox boolean NOT NULL DEFAULT false`.execute(db);
  await sql`
    CREATE TABLE sandbox_mail (
      crm_id text NOT NULL,
      mail_id uuid NOT NULL,
      recipient text NOT NULL,
      content jsonb NOT NULL,
      sent_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, mail_id),
      FOREIGN KEY (crm_id, mail_id) REFERENCES mail (crm_id, id) ON DELETE CASCADE
    )`.execute(db);
  await sql`CREATE INDEX sandbox_mail_recipient ON sandbox_mail (crm_id, recipient, mail_id)`.execute(db);
  await sql`CREATE INDEX sandbox_mail_sent_at ON sandbox_mail (sent_at)`.execute(db);
}
