import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE unwritten_mail ADD COLUMN previous_event_id uuid, ADD COLUMN failures integer NOT NULL DEFAULT 0`.execute(
    db,
  );
}
