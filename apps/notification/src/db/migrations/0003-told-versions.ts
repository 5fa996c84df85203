import { type Kysely, sql } from 'kysely';

/** What a mail says of the time and place: that of which version. Null: that of the mail's own. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE mail ADD COLUMN told_version integer`.execute(db);
}
