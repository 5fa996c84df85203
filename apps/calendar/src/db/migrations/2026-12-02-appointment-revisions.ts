import { type Kysely, sql } from 'kysely';

/** Not `version`: statements of the previous version join appointments with participations, and do not say whose version they mean. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE appointment ADD COLUMN revision integer NOT NULL DEFAULT 1`.execute(db);
}
