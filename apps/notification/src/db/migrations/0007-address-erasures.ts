import { type Kysely, sql } from 'kysely';

/** For mails about no customer: their address may be erased while they are written. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE TABLE address_erasure (crm_id text PRIMARY KEY, erasures bigint NOT NULL)`.execute(db);
}
