import { type Kysely, sql } from 'kysely';

/**
 * A booking changes a row of `appointment`, and a move one of `participation`. If the new version fits into the same page, and no indexed column
 * changes, no index is written: the pages keep room for that, and the indexes of the reservations no longer depend on the state.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE appointment SET (fillfactor = 85)`.execute(db);
  await sql`ALTER TABLE participation SET (fillfactor = 85)`.execute(db);
  await sql`DROP INDEX participation_reserved, participation_expiry`.execute(db);
  await sql`CREATE INDEX participation_reserved ON participation (crm_id, appointment_id, reserved_until) WHERE reserved_until IS NOT NULL`.execute(
    db,
  );
  await sql`CREATE INDEX participation_expiry ON participation (reserved_until) WHERE reserved_until IS NOT NULL`.execute(
    db,
  );
}
