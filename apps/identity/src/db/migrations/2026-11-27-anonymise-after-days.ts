import { type Kysely, sql } from 'kysely';

/** Null: bookings of the CRM are kept as long as calendar's setting says, which applies to all CRMs. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE crm ADD COLUMN anonymise_after_days integer CHECK (anonymise_after_days BETWEEN 1 AND 36500)`.execute(
    db,
  );
}
