import { type Kysely, sql } from 'kysely';

/** Messages are no longer encoded in SQL. After the functions have been replaced, which called these. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    DROP FUNCTION IF EXISTS participation_changed(participation, uuid, text, text, text, text, uuid, integer, uuid, integer);
    DROP FUNCTION IF EXISTS proto_varint(integer)`.execute(db);
}
