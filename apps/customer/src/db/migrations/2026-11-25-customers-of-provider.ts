import { type Kysely, sql } from 'kysely';

/** For the list of a provider's customers in the order of their creation. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE INDEX customer_provider ON customer (crm_id, provider_id, id)`.execute(db);
}
