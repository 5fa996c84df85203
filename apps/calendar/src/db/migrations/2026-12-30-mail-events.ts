import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE participation ADD COLUMN mail_event_id uuid`.execute(db);
}
