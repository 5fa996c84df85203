import { type Kysely, sql } from 'kysely';

/** To find the participants with an address who were embedded in appointments. Customers' participations have no address of their own. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE INDEX participation_by_email ON participation (crm_id, (lower(normalize(email) COLLATE pg_c_utf8)))
     WHERE email IS NOT NULL`.execute(db);
}
