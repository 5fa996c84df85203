import { type Kysely, sql } from 'kysely';

/** Decided when a CRM is created: it can never become one that reaches people, or the other way round. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE crm ADD COLUMN sandbox boolean NOT NULL DEFAULT false`.execute(db);
}
