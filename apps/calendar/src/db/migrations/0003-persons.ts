import { type Kysely, sql } from 'kysely';

/** What persons do by the links in their mails. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE participation
      ADD COLUMN attendance_confirmed_at timestamptz,
      ADD COLUMN moves_by_person integer NOT NULL DEFAULT 0;
    ALTER TABLE booking_rules ADD COLUMN self_service boolean`.execute(db);
}
