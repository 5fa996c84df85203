import { type Kysely, sql } from 'kysely';

/** What CRMs note of their customers. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE customer ADD COLUMN metadata jsonb`.execute(db);
}
