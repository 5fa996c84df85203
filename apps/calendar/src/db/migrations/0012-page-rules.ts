import { type Kysely, sql } from 'kysely';

/**
 * What the form of a booking page asks for, which sites may show the page in a frame, and whether bookings are confirmed
 * by a mail.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE booking_rules
      ADD COLUMN ask_mobile text NOT NULL DEFAULT 'NO' CHECK (ask_mobile IN ('NO', 'OPTIONAL', 'REQUIRED')),
      ADD COLUMN embed_on text[] NOT NULL DEFAULT '{}',
      ADD COLUMN verify_email boolean NOT NULL DEFAULT false`.execute(db);
}
