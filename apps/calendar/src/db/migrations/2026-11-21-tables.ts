import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createClock(db);
  await createReplicas(db);
  await createTimeslots(db);
  await createAppointments(db);
  await createParticipations(db);
}

/** The one clock of reservations and archiving. The offset exists for tests, as a setting of their sessions. */
async function createClock(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE FUNCTION scheduling_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
      SELECT clock_timestamp() + coalesce(nullif(current_setting('scheduling.clock_offset', true), ''), '0')::interval
    $$`.execute(db);
}

async function createReplicas(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE provider (
      crm_id text NOT NULL,
      id uuid NOT NULL,
      reference text NOT NULL,
      time_zone text NOT NULL,
      version integer NOT NULL,
      PRIMARY KEY (crm_id, id),
      CONSTRAINT provider_reference_key UNIQUE (crm_id, reference)
    )`.execute(db);
  await sql`
    CREATE TABLE customer (
      crm_id text NOT NULL,
      id uuid NOT NULL,
      provider_id uuid,
      reference text,
      user_name text,
      email text,
      mobile text,
      language text,
      version integer NOT NULL,
      refreshed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      erased_at timestamptz,
      PRIMARY KEY (crm_id, id),
      CHECK (erased_at IS NULL OR (reference IS NULL AND user_name IS NULL AND email IS NULL AND mobile IS NULL AND language IS NULL))
    )`.execute(db);
  // Not unique: a reference can pass from one customer to another, and the copies of the two arrive in any order.
  await sql`CREATE INDEX customer_by_reference ON customer (crm_id, provider_id, reference, refreshed_at)`.execute(db);
}

async function createTimeslots(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE timeslot (
      crm_id text NOT NULL,
      id uuid NOT NULL DEFAULT uuidv7(),
      provider_id uuid NOT NULL,
      reference text NOT NULL,
      resource_reference text NOT NULL,
      starts_at timestamptz NOT NULL,
      ends_at timestamptz NOT NULL,
      raster bigint NOT NULL,
      default_capacity bigint NOT NULL,
      default_accept_bookings boolean NOT NULL,
      address jsonb,
      state text NOT NULL CHECK (state IN ('CREATED', 'BOOKABLE')),
      content_digest bytea NOT NULL,
      PRIMARY KEY (crm_id, id),
      CONSTRAINT timeslot_reference_key UNIQUE (crm_id, reference),
      FOREIGN KEY (crm_id, provider_id) REFERENCES provider,
      CHECK (starts_at < ends_at)
    )`.execute(db);
  await sql`CREATE INDEX timeslot_by_resource ON timeslot (crm_id, provider_id, resource_reference, starts_at, id, ends_at)`.execute(
    db,
  );
}

async function createAppointments(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE appointment (
      crm_id text NOT NULL,
      id uuid NOT NULL DEFAULT uuidv7(),
      provider_id uuid NOT NULL,
      reference text NOT NULL,
      series_id text,
      resource_reference text NOT NULL,
      product_reference text NOT NULL,
      contact_reference text,
      description text,
      notes text,
      address jsonb,
      price_value numeric,
      price_currency text,
      starts_at timestamptz NOT NULL,
      ends_at timestamptz NOT NULL,
      capacity bigint NOT NULL,
      taken bigint NOT NULL CHECK (taken >= 0),
      accept_bookings boolean NOT NULL,
      state text NOT NULL DEFAULT 'ACTIVE' CHECK (state IN ('ACTIVE', 'CANCELLED')),
      content_digest bytea NOT NULL,
      PRIMARY KEY (crm_id, id),
      CONSTRAINT appointment_reference_key UNIQUE (crm_id, reference),
      FOREIGN KEY (crm_id, provider_id) REFERENCES provider,
      CHECK (starts_at < ends_at)
    )`.execute(db);
  // Lists go by start and id; the end is in the index so that a skipped row is never fetched from the table.
  await sql`CREATE INDEX appointment_by_start ON appointment (crm_id, provider_id, starts_at, id, ends_at)`.execute(db);
  await sql`CREATE INDEX appointment_by_resource ON appointment (crm_id, provider_id, resource_reference, starts_at, id, ends_at)`.execute(
    db,
  );
  await sql`CREATE INDEX appointment_by_product ON appointment (crm_id, provider_id, product_reference, starts_at, id, ends_at)`.execute(
    db,
  );
  await sql`CREATE INDEX appointment_by_end ON appointment (ends_at)`.execute(db);
  await sql`CREATE INDEX appointment_by_series ON appointment (crm_id, provider_id, series_id) WHERE series_id IS NOT NULL`.execute(
    db,
  );
}

async function createParticipations(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE participation (
      crm_id text NOT NULL,
      id uuid NOT NULL,
      appointment_id uuid NOT NULL,
      customer_id uuid,
      reference text NOT NULL,
      name text,
      email text,
      mobile text,
      note text,
      state text NOT NULL CHECK (state IN ('RESERVED', 'REQUESTED', 'BOOKED', 'CANCELED', 'DELETED')),
      exempt boolean NOT NULL,
      reserved_until timestamptz,
      version integer NOT NULL DEFAULT 1,
      PRIMARY KEY (crm_id, id),
      CONSTRAINT participation_reference_key UNIQUE (crm_id, reference),
      FOREIGN KEY (crm_id, appointment_id) REFERENCES appointment ON DELETE CASCADE,
      FOREIGN KEY (crm_id, customer_id) REFERENCES customer,
      CHECK ((state = 'RESERVED') = (reserved_until IS NOT NULL))
    )`.execute(db);
  await sql`CREATE INDEX participation_by_appointment ON participation (crm_id, appointment_id, id)`.execute(db);
  await sql`CREATE INDEX participation_by_customer ON participation (crm_id, customer_id) WHERE customer_id IS NOT NULL`.execute(
    db,
  );
  await sql`CREATE INDEX participation_reserved ON participation (crm_id, appointment_id, reserved_until) WHERE state = 'RESERVED'`.execute(
    db,
  );
  await sql`CREATE INDEX participation_expiry ON participation (reserved_until) WHERE state = 'RESERVED'`.execute(db);
  await sql`
    CREATE TABLE participation_message (
      crm_id text NOT NULL,
      participation_id uuid NOT NULL,
      version integer NOT NULL,
      text text NOT NULL,
      PRIMARY KEY (crm_id, participation_id, version),
      FOREIGN KEY (crm_id, participation_id) REFERENCES participation ON DELETE CASCADE
    )`.execute(db);
  await sql`
    CREATE TABLE removed_participation (
      crm_id text NOT NULL,
      customer_id uuid NOT NULL,
      participation_id uuid NOT NULL,
      appointment_id uuid NOT NULL,
      version integer NOT NULL,
      PRIMARY KEY (crm_id, customer_id, participation_id),
      FOREIGN KEY (crm_id, appointment_id) REFERENCES appointment ON DELETE CASCADE
    )`.execute(db);
}
