import { type Kysely, sql } from 'kysely';

/** Who can book on a provider's page, and which customers are invited to. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE booking_rules ADD COLUMN access text NOT NULL DEFAULT 'PUBLIC' CHECK (access IN ('PUBLIC', 'INVITED'));

    CREATE TABLE invitation (
      crm_id text NOT NULL,
      id uuid NOT NULL,
      provider_id uuid NOT NULL,
      customer_id uuid NOT NULL,
      product_reference text NOT NULL,
      bookings integer NOT NULL,
      -- How many of its bookings have been anonymised: nothing leads from these to the customer.
      anonymised integer NOT NULL DEFAULT 0,
      expires_at timestamptz NOT NULL,
      created_at timestamptz NOT NULL,
      PRIMARY KEY (crm_id, id),
      FOREIGN KEY (crm_id, provider_id) REFERENCES provider,
      FOREIGN KEY (crm_id, customer_id) REFERENCES customer
    );
    CREATE INDEX invitation_by_customer ON invitation (crm_id, customer_id);
    CREATE INDEX invitation_expiry ON invitation (expires_at);

    -- What was booked by an invitation, whatever has become of it.
    CREATE TABLE invitation_booking (
      crm_id text NOT NULL,
      participation_id uuid NOT NULL,
      invitation_id uuid NOT NULL,
      PRIMARY KEY (crm_id, participation_id),
      FOREIGN KEY (crm_id, participation_id) REFERENCES participation ON DELETE CASCADE,
      FOREIGN KEY (crm_id, invitation_id) REFERENCES invitation ON DELETE CASCADE
    );
    CREATE INDEX invitation_booking_by_invitation ON invitation_booking (crm_id, invitation_id)`.execute(db);
}
