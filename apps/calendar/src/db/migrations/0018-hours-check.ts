import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE timeslot VALIDATE CONSTRAINT timeslot_from_hours_check`.execute(db);
}
