import { type Kysely, sql } from 'kysely';

/** The limit of verification mails to a mailbox, which outlasts its users. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE verification_mailbox (
      crm_id text NOT NULL REFERENCES crm,
      address_digest bytea NOT NULL,
      requested_at timestamptz[] NOT NULL,
      expires_at timestamptz NOT NULL,
      PRIMARY KEY (crm_id, address_digest)
    )`.execute(db);
  await sql`CREATE INDEX verification_mailbox_expires_at ON verification_mailbox (expires_at)`.execute(db);
}
