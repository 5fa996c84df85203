import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE event_organizer (
      crm_id text NOT NULL,
      participation_id uuid NOT NULL,
      address text NOT NULL,
      keep_until timestamptz NOT NULL,
      PRIMARY KEY (crm_id, participation_id)
    )`.execute(db);
  await sql`CREATE INDEX event_organizer_keep_until ON event_organizer (keep_until)`.execute(db);
}
