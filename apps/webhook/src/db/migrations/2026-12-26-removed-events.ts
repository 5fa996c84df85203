import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE TABLE removed_event (crm_id text PRIMARY KEY, id uuid NOT NULL, sequence bigint NOT NULL)`.execute(
    db,
  );
}
