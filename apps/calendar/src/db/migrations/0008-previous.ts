import { type Kysely, sql } from 'kysely';

/** What an appointment was before a change that its participants get a mail about, so that the mail can say it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE participation_previous (
      crm_id text NOT NULL,
      participation_id uuid NOT NULL,
      version integer NOT NULL,
      starts_at timestamptz NOT NULL,
      ends_at timestamptz NOT NULL,
      description text,
      address jsonb,
      PRIMARY KEY (crm_id, participation_id, version),
      FOREIGN KEY (crm_id, participation_id) REFERENCES participation ON DELETE CASCADE
    );
    ALTER TABLE participation ADD COLUMN untold_version integer`.execute(db);
}
