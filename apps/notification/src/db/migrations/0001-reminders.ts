import { type Kysely, sql } from 'kysely';

/** Of which start a mail reminds, and when nobody needs it any more. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE unwritten_mail
      ADD COLUMN starts_at timestamptz,
      ADD COLUMN expires_at timestamptz`.execute(db);
}
