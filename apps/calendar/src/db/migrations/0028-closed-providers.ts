import { type Kysely, sql } from 'kysely';

/** Providers that are being deleted, or have been, with the booking rules for the case that the deletion does not end. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE closed_provider (
      crm_id text NOT NULL,
      id uuid NOT NULL,
      version integer NOT NULL,
      rules jsonb,
      closed_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, id)
    );
    CREATE INDEX closed_provider_closed_at ON closed_provider (closed_at)`.execute(db);
}
