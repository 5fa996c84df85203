import { type Kysely, sql } from 'kysely';

/** When the mails of a verification were requested, so that their number can be limited. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE email_verification ADD COLUMN requested_at timestamptz[] NOT NULL DEFAULT '{}'`.execute(db);
}
