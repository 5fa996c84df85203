import { type Kysely, sql } from 'kysely';

/** Null: mails of the CRM have no logo, the colours of the service, and no imprint but the provider's. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE crm ADD COLUMN logo_url text, ADD COLUMN colour text, ADD COLUMN imprint text`.execute(db);
}
