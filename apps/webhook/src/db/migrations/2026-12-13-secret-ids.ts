import { type Kysely, sql } from 'kysely';

/** Null for a secret from before: whoever created the webhook has not replaced it since. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE webhook ADD COLUMN secret_id uuid`.execute(db);
}
