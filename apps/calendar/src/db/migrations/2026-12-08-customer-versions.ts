import { type Kysely, sql } from 'kysely';

/** The customer service has a reference forgotten before it changes it, and no older copy may bring it back. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE customer ADD COLUMN required_version integer NOT NULL DEFAULT 0`.execute(db);
}
