import { type Kysely, sql } from 'kysely';

/** Nothing calls it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`DROP FUNCTION IF EXISTS sequence_events(jsonb)`.execute(db);
}
