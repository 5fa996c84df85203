import { type Kysely, sql } from 'kysely';

/** Since when a participation is for its time and in its state. Null: since it was changed last. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE participation ADD COLUMN arranged_at timestamptz`.execute(db);
}
