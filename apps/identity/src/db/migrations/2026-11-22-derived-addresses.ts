import { type Kysely, sql } from 'kysely';

/**
 * Addresses that were derived before this do not count for the limit of their CRM: the number alone does not show whether bob11@ was derived
 * from bob@ or from bob1@.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE app_user ADD COLUMN email_derived_from text`.execute(db);
  await sql`CREATE INDEX app_user_email_derived_from ON app_user (crm_id, email_derived_from) WHERE email_derived_from IS NOT NULL`.execute(
    db,
  );
}
