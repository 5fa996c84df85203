import { type Kysely, sql } from 'kysely';

/** The URLs under which calendar programs read a provider's appointments, and when each of their events has changed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE calendar_subscription (
      crm_id text NOT NULL,
      id uuid NOT NULL,
      provider_id uuid NOT NULL,
      reference text NOT NULL,
      resource_reference text,
      contact_reference text,
      details text NOT NULL CHECK (details IN ('NONE', 'NAMES', 'CONTACT')),
      -- Whoever has the secret reads the calendar, and names nothing else.
      secret_hash bytea NOT NULL CONSTRAINT calendar_subscription_secret_key UNIQUE,
      created_at timestamptz NOT NULL DEFAULT now(),
      digest bytea,
      changed_at timestamptz,
      fingerprint text,
      compared_at timestamptz,
      PRIMARY KEY (crm_id, id),
      CONSTRAINT calendar_subscription_reference_key UNIQUE (crm_id, reference),
      FOREIGN KEY (crm_id, provider_id) REFERENCES provider,
      CHECK (num_nonnulls(digest, changed_at, fingerprint, compared_at) IN (0, 4))
    );
    CREATE INDEX calendar_subscription_by_provider ON calendar_subscription (crm_id, provider_id, id);

    -- Not a foreign key of the appointment: whoever deletes that need not know who reads it.
    CREATE TABLE shown_appointment (
      crm_id text NOT NULL,
      subscription_id uuid NOT NULL,
      appointment_id uuid NOT NULL,
      digest bytea NOT NULL,
      changed_at timestamptz NOT NULL,
      PRIMARY KEY (crm_id, subscription_id, appointment_id),
      FOREIGN KEY (crm_id, subscription_id) REFERENCES calendar_subscription ON DELETE CASCADE
    )`.execute(db);
}
