import { type Kysely, sql } from 'kysely';

/** A process of the previous version shows provisional customers in the list only: what finds one customer is a function. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE customer ADD COLUMN provisional_until timestamptz, ADD COLUMN prepared_by text`.execute(db);
}
