import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE crm ADD COLUMN privacy_url text`.execute(db);
}
