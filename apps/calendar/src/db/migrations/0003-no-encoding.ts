import { type Kysely, sql } from 'kysely';

/** Messages are no longer encoded in SQL. Has run in some databases before, in a set of its own. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    DROP FUNCTION IF EXISTS participation_changed(participation, uuid, text, text, text, text, uuid, integer, uuid, integer);
    DROP FUNCTION IF EXISTS proto_varint(integer)`.execute(db);
}
