import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE participation VALIDATE CONSTRAINT participation_no_show_check`.execute(db);
}
