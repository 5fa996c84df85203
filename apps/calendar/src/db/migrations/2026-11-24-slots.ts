import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE appointment ADD COLUMN when_empty text CHECK (when_empty IN ('REMOVED', 'CANCELLED'))`.execute(
    db,
  );
  await createBookingRules(db);
  await createIndexes(db);
}

async function createBookingRules(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE booking_rules (
      crm_id text NOT NULL,
      provider_id uuid NOT NULL,
      minimum_notice integer NOT NULL,
      horizon integer,
      change_notice integer NOT NULL,
      confirmation text NOT NULL CHECK (confirmation IN ('BOOKED', 'REQUESTED')),
      page boolean NOT NULL,
      reminders integer[] NOT NULL,
      notify_provider boolean NOT NULL,
      max_per_person integer NOT NULL,
      offers jsonb NOT NULL,
      PRIMARY KEY (crm_id, provider_id),
      FOREIGN KEY (crm_id, provider_id) REFERENCES provider
    )`.execute(db);
}

/** What overlaps a period starts at most 24 hours before it, or is one of the few that are longer. */
async function createIndexes(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE INDEX appointment_long ON appointment (crm_id, provider_id, resource_reference, ends_at)
     WHERE ends_at - starts_at > interval '24 hours'`.execute(db);
  await sql`
    CREATE INDEX timeslot_long_by_resource ON timeslot (crm_id, provider_id, resource_reference, ends_at)
     WHERE ends_at - starts_at > interval '24 hours'`.execute(db);
  await sql`CREATE INDEX timeslot_long ON timeslot (crm_id, provider_id, ends_at) WHERE ends_at - starts_at > interval '24 hours'`.execute(
    db,
  );
  await sql`CREATE INDEX timeslot_by_start ON timeslot (crm_id, provider_id, starts_at, id, ends_at)`.execute(db);
}
