import { type Kysely, sql } from 'kysely';

/** What writing a mail again needs. Mails that were stored before this, or by the previous version, do not say it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE mail ADD COLUMN actor text, ADD COLUMN calendar_method text, ADD COLUMN resend_of uuid`.execute(
    db,
  );
}
