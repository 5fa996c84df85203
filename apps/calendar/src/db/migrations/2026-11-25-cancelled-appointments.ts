import { type Kysely, sql } from 'kysely';

/** Lists can be filtered by state, and cancelled appointments may be rare among many others. A booking changes none of these columns. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE INDEX appointment_cancelled ON appointment (crm_id, provider_id, starts_at, id, ends_at) WHERE state = 'CANCELLED'`.execute(
    db,
  );
}
