import { type Kysely, sql } from 'kysely';

/** Who has decided a request by the link in a mail. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE participation_decision (
      crm_id text NOT NULL,
      participation_id uuid NOT NULL,
      confirmed boolean NOT NULL,
      recipient_id uuid NOT NULL,
      decided_at timestamptz NOT NULL,
      PRIMARY KEY (crm_id, participation_id),
      FOREIGN KEY (crm_id, participation_id) REFERENCES participation ON DELETE CASCADE
    )`.execute(db);
}
