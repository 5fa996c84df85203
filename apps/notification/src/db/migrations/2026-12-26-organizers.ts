import { type Kysely, sql } from 'kysely';

/**
 * The organizer of participations from then on is the sender (ADR 34), and of earlier ones the provider, as it is in calendars. It is not yet the sender while processes
 * of the previous version are being replaced, unless there is none: then nothing was sent yet.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE TABLE organizer_rule (id boolean PRIMARY KEY DEFAULT true CHECK (id), sender_since timestamptz NOT NULL)`.execute(db);
  await sql`
    INSERT INTO organizer_rule (sender_since)
    SELECT CASE WHEN EXISTS (SELECT FROM mail) OR EXISTS (SELECT FROM inbox) THEN now() + interval '1 hour' ELSE '-infinity' END`.execute(db);
}
