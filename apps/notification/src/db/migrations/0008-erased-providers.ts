import { type Kysely, sql } from 'kysely';

/** Which providers are gone, and of which one an organizer is: it is erased with the provider. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE erased_provider (
      crm_id text NOT NULL,
      provider_id uuid NOT NULL,
      erased_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, provider_id)
    );
    ALTER TABLE event_organizer ADD COLUMN provider_id uuid`.execute(db);
}
