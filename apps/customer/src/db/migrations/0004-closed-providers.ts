import { type Kysely, sql } from 'kysely';

/**
 * Providers that are being deleted, or have been: no customer is created for one. The lock is shared by those who create
 * customers; whoever closes a provider has it alone.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE closed_provider (
      crm_id text NOT NULL,
      provider_id uuid NOT NULL,
      version integer NOT NULL,
      closed_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, provider_id)
    );
    CREATE INDEX closed_provider_closed_at ON closed_provider (closed_at);

    CREATE FUNCTION require_open_provider() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(hashtextextended('provider ' || NEW.provider_id, 0));
      PERFORM FROM closed_provider WHERE crm_id = NEW.crm_id AND provider_id = NEW.provider_id;
      IF FOUND THEN
        RAISE EXCEPTION 'the provider is closed' USING ERRCODE = 'check_violation', CONSTRAINT = 'customer_provider_open';
      END IF;
      RETURN NEW;
    END
    $$;
    CREATE TRIGGER customer_added BEFORE INSERT ON customer FOR EACH ROW EXECUTE FUNCTION require_open_provider()`.execute(
    db,
  );
}
