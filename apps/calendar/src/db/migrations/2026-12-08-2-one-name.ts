import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE participation ADD CONSTRAINT participation_person_check
      CHECK (customer_id IS NULL OR (name IS NULL AND email IS NULL AND mobile IS NULL)) NOT VALID`.execute(db);
}
