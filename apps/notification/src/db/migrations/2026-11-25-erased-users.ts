import { type Kysely, sql } from 'kysely';

/** Mails that were stored before this do not know their user. They are finished, and their content is cleared, within a day. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE mail ADD COLUMN user_id uuid`.execute(db);
  await sql`CREATE INDEX mail_user ON mail (crm_id, user_id) WHERE user_id IS NOT NULL`.execute(db);
  await sql`
    CREATE TABLE erased_user (
      crm_id text NOT NULL,
      user_id uuid NOT NULL,
      erased_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, user_id)
    )`.execute(db);
}
