import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE participation VALIDATE CONSTRAINT participation_person_check`.execute(db);
}
