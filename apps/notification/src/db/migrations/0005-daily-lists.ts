import { type Kysely, sql } from 'kysely';

/** Of the list of a day: of which day, and when nobody needs it any more. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE provider_notice
      ADD COLUMN day date,
      ADD COLUMN expires_at timestamptz`.execute(db);
}
