import { type Kysely, sql } from 'kysely';

/**
 * For when the request is of which a mail says that it waits, and which mail to a provider comes first. A reminder of a
 * booking has its start in another column: there the version before would take it for a booking.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE unwritten_mail ADD COLUMN requested_starts_at timestamptz;
    ALTER TABLE provider_notice ADD COLUMN requested_starts_at timestamptz, ADD COLUMN previous_event_id uuid`.execute(
    db,
  );
}
