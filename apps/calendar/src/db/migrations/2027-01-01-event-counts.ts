import { type Kysely, sql } from 'kysely';

/** The events of appointments that exist are counted from now on. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE appointment ADD COLUMN event_count integer NOT NULL DEFAULT 0`.execute(db);
}
