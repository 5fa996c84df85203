import { type Kysely, sql } from 'kysely';

/** Keys that exist, and those that an older version creates, may do everything. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE api_key ADD COLUMN scope text NOT NULL DEFAULT 'all'
      CONSTRAINT api_key_scope_check CHECK (scope IN ('read', 'book', 'all'))`.execute(db);
}
