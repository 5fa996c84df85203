import { type Kysely, sql } from 'kysely';

/**
 * Before the customer service changes a reference, nobody is booked by it any more, and no older copy may bring it back. What a process of the previous version stores
 * meanwhile does not say that the reference is known.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE customer ADD COLUMN required_version integer NOT NULL DEFAULT 0, ADD COLUMN reference_known boolean NOT NULL DEFAULT true`.execute(
    db,
  );
}
