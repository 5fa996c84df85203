import { type Kysely, sql } from 'kysely';

/** What persons book on the page of a provider. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    -- What a person has written when they booked on the page is a note on the participation, also of a customer, whose contact data is elsewhere.
    -- NOT VALID: the constraint before was stricter.
    ALTER TABLE participation DROP CONSTRAINT participation_person_check;
    ALTER TABLE participation ADD CONSTRAINT participation_person_check CHECK (customer_id IS NULL OR num_nonnulls(name, email, mobile) = 0) NOT VALID;

    -- Pages know a provider by its id alone.
    CREATE UNIQUE INDEX provider_by_id ON provider (id);

    -- What somebody wants to book on a page, until whoever has the address confirms it: no customer, no seat.
    CREATE TABLE pending_booking (
      crm_id text NOT NULL,
      id uuid NOT NULL,
      provider_id uuid NOT NULL,
      choice uuid NOT NULL,
      offer text NOT NULL,
      description text NOT NULL,
      resource_reference text NOT NULL,
      starts_at timestamptz NOT NULL,
      ends_at timestamptz NOT NULL,
      address jsonb,
      price_value numeric,
      price_currency text,
      name text NOT NULL,
      email text NOT NULL,
      mobile text,
      note text,
      language text NOT NULL,
      expires_at timestamptz NOT NULL,
      customer_id uuid,
      PRIMARY KEY (crm_id, id),
      FOREIGN KEY (crm_id, provider_id) REFERENCES provider
    );
    CREATE INDEX pending_booking_by_address ON pending_booking (crm_id, address_key(email));
    CREATE INDEX pending_booking_expiry ON pending_booking (expires_at);

    -- The mails to an address that nobody has confirmed, of the last day: a digest is enough to count them.
    CREATE TABLE verification_mail (
      crm_id text NOT NULL,
      pending_booking_id uuid NOT NULL,
      address_digest bytea NOT NULL,
      sent_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (crm_id, pending_booking_id)
    );
    CREATE INDEX verification_mail_by_address ON verification_mail (crm_id, address_digest, sent_at);
    CREATE INDEX verification_mail_age ON verification_mail (sent_at)`.execute(db);
}
