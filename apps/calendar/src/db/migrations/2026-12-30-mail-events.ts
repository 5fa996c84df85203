import { type Kysely, sql } from 'kysely';

/** Of participations that exist, it is not known whether their people were invited: they count as invited. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE participation ADD COLUMN mail_event_id uuid, ADD COLUMN invited boolean NOT NULL DEFAULT true`.execute(
    db,
  );
  await sql`ALTER TABLE participation ALTER COLUMN invited SET DEFAULT false`.execute(db);
  await sql`ALTER TABLE removed_participation ADD COLUMN invited boolean NOT NULL DEFAULT true`.execute(db);
}
