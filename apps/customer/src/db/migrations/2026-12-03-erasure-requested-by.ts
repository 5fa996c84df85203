import { type Kysely, sql } from 'kysely';

/** Unknown for those from before. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE erasure ADD COLUMN requested_by text`.execute(db);
}
