import { type Kysely, sql } from 'kysely';

/** Of events that have arrived, nothing of this is known. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE event ADD COLUMN previous_appointment_id uuid, ADD COLUMN capacity bigint, ADD COLUMN exempt boolean`.execute(
    db,
  );
  await sql`
    ALTER TABLE incoming_event ADD COLUMN previous_appointment_id uuid, ADD COLUMN capacity bigint, ADD COLUMN exempt boolean,
      ADD COLUMN ordinal bigint, ADD COLUMN previous_ordinal bigint`.execute(db);
  await sql`ALTER TABLE latest_version ADD COLUMN ordinal bigint NOT NULL DEFAULT 0`.execute(db);
}
