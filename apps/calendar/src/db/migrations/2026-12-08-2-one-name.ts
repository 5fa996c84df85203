import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE participation ADD CONSTRAINT participation_person_check
      CHECK (customer_id IS NULL OR num_nonnulls(name, email, mobile, note) = 0) NOT VALID`.execute(db);
}
