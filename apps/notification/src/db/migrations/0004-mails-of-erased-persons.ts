import { type Kysely, sql } from 'kysely';

/** Since when the person of a mail is erased that is being sent. Null: the person is not erased, or it is the last mail. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE mail ADD COLUMN erased_at timestamptz`.execute(db);
}
