import { type Kysely, sql } from 'kysely';

/** Mails that were stored before this do not name their provider, and neither do their failures. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE mail ADD COLUMN provider_id uuid`.execute(db);
}
