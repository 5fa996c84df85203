-- The tables of calendar. schema.ts says what the columns mean. Run once, and never changed: a change is a migration.
-- The bodies of the functions are indented as existing databases have them.

-- The time of the database, for reservations and archiving. The offset exists for tests, as a setting of their sessions.
CREATE FUNCTION scheduling_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
      SELECT clock_timestamp() + coalesce(nullif(current_setting('scheduling.clock_offset', true), ''), '0')::interval
    $$;

-- Milliseconds, because the length of a day depends on the session's time zone. A CRM without a row has the time of the database.
CREATE TABLE sandbox_clock (
  crm_id text PRIMARY KEY,
  ahead_ms bigint NOT NULL
);

-- The time of a CRM.
CREATE FUNCTION scheduling_now(the_crm text) RETURNS timestamptz LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
    BEGIN
      RETURN scheduling_now() + coalesce((SELECT make_interval(secs => ahead_ms / 1000.0) FROM sandbox_clock WHERE crm_id = the_crm), interval '0');
    END
    $$;

CREATE TABLE provider (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  reference text NOT NULL,
  time_zone text NOT NULL,
  version integer NOT NULL,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT provider_reference_key UNIQUE (crm_id, reference)
);

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
);

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
  required_version integer NOT NULL DEFAULT 0,
  reference_known boolean NOT NULL DEFAULT true,
  PRIMARY KEY (crm_id, id),
  CHECK (erased_at IS NULL OR (reference IS NULL AND user_name IS NULL AND email IS NULL AND mobile IS NULL AND language IS NULL))
);
-- Not unique: a reference can pass from one customer to another, and the copies of the two arrive in any order.
CREATE INDEX customer_by_reference ON customer (crm_id, provider_id, reference, refreshed_at);
CREATE INDEX customer_to_refresh ON customer (refreshed_at) WHERE NOT reference_known AND erased_at IS NULL;

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
);
-- Lists go by start and id; the end is in the index so that a skipped row is never fetched from the table.
CREATE INDEX timeslot_by_start ON timeslot (crm_id, provider_id, starts_at, id, ends_at);
CREATE INDEX timeslot_by_resource ON timeslot (crm_id, provider_id, resource_reference, starts_at, id, ends_at);
-- What overlaps a period starts at most 24 hours before it, or is one of the few that are longer.
CREATE INDEX timeslot_long ON timeslot (crm_id, provider_id, ends_at) WHERE ends_at - starts_at > interval '24 hours';
CREATE INDEX timeslot_long_by_resource ON timeslot (crm_id, provider_id, resource_reference, ends_at) WHERE ends_at - starts_at > interval '24 hours';

-- A booking changes a row of appointment, and a move one of participation. If the new version fits into the same page, and no indexed column changes, no index
-- is written: the pages keep room for that.
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
  when_empty text CHECK (when_empty IN ('REMOVED', 'CANCELLED')),
  anonymised boolean NOT NULL DEFAULT false,
  revision integer NOT NULL DEFAULT 1,
  event_count integer NOT NULL DEFAULT 0,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT appointment_reference_key UNIQUE (crm_id, reference),
  FOREIGN KEY (crm_id, provider_id) REFERENCES provider,
  CHECK (starts_at < ends_at)
) WITH (fillfactor = 85);
-- As those of timeslots.
CREATE INDEX appointment_by_start ON appointment (crm_id, provider_id, starts_at, id, ends_at);
CREATE INDEX appointment_by_resource ON appointment (crm_id, provider_id, resource_reference, starts_at, id, ends_at);
CREATE INDEX appointment_by_product ON appointment (crm_id, provider_id, product_reference, starts_at, id, ends_at);
CREATE INDEX appointment_long ON appointment (crm_id, provider_id, resource_reference, ends_at) WHERE ends_at - starts_at > interval '24 hours';
CREATE INDEX appointment_by_series ON appointment (crm_id, provider_id, series_id) WHERE series_id IS NOT NULL;
-- Lists can be filtered by state, and cancelled appointments may be rare among many others.
CREATE INDEX appointment_cancelled ON appointment (crm_id, provider_id, starts_at, id, ends_at) WHERE state = 'CANCELLED';
-- The retention job reads what has become due, and not the whole history every hour.
CREATE INDEX appointment_to_anonymise ON appointment (crm_id, ends_at) WHERE NOT anonymised;

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
  -- Without an index, so that an update need not write one.
  changed_at timestamptz NOT NULL DEFAULT scheduling_now(),
  mail_event_id uuid,
  invited boolean NOT NULL DEFAULT false,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT participation_reference_key UNIQUE (crm_id, reference),
  FOREIGN KEY (crm_id, appointment_id) REFERENCES appointment ON DELETE CASCADE,
  FOREIGN KEY (crm_id, customer_id) REFERENCES customer,
  CHECK ((state = 'RESERVED') = (reserved_until IS NOT NULL)),
  -- The contact data of a customer is not here, where no erasure would find it.
  CONSTRAINT participation_person_check CHECK (customer_id IS NULL OR num_nonnulls(name, email, mobile, note) = 0)
) WITH (fillfactor = 85);
CREATE INDEX participation_by_appointment ON participation (crm_id, appointment_id, id);
CREATE INDEX participation_by_customer ON participation (crm_id, customer_id) WHERE customer_id IS NOT NULL;
-- Those who were embedded in appointments: customers' participations have no address of their own.
CREATE INDEX participation_by_address ON participation (crm_id, address_key(email)) WHERE email IS NOT NULL;
-- These do not depend on the state, so that a change of it need not write them.
CREATE INDEX participation_reserved ON participation (crm_id, appointment_id, reserved_until) WHERE reserved_until IS NOT NULL;
CREATE INDEX participation_expiry ON participation (reserved_until) WHERE reserved_until IS NOT NULL;

CREATE TABLE participation_message (
  crm_id text NOT NULL,
  participation_id uuid NOT NULL,
  version integer NOT NULL,
  text text NOT NULL,
  PRIMARY KEY (crm_id, participation_id, version),
  FOREIGN KEY (crm_id, participation_id) REFERENCES participation ON DELETE CASCADE
);

CREATE TABLE removed_participation (
  crm_id text NOT NULL,
  customer_id uuid NOT NULL,
  participation_id uuid NOT NULL,
  appointment_id uuid NOT NULL,
  version integer NOT NULL,
  invited boolean NOT NULL DEFAULT true,
  PRIMARY KEY (crm_id, customer_id, participation_id),
  FOREIGN KEY (crm_id, appointment_id) REFERENCES appointment ON DELETE CASCADE
);

-- The time of a change, whoever writes.
CREATE FUNCTION set_changed_at() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.changed_at := scheduling_now();
      RETURN NEW;
    END
    $$;

CREATE TRIGGER participation_changed BEFORE UPDATE ON participation FOR EACH ROW EXECUTE FUNCTION set_changed_at();

-- Appointments whose participations are all anonymised are marked. The triggers remove the mark when a person may have been added since, whoever writes;
-- everybody who does has locked the appointment. For a participation that takes a seat, the update of the seats does it, so that a booking calls no function.
-- Embedded participations (those with a name) are inserted with their appointment, which is not marked. Those in a marked one are all anonymous; a text or a
-- customer is added to one with a new version.
CREATE FUNCTION unmark_with_seats() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.anonymised := false;
      RETURN NEW;
    END
    $$;

CREATE TRIGGER seats_changed BEFORE UPDATE ON appointment FOR EACH ROW WHEN (OLD.anonymised AND NEW.taken <> OLD.taken)
  EXECUTE FUNCTION unmark_with_seats();

CREATE FUNCTION unmark_appointment() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE appointment SET anonymised = false WHERE crm_id = NEW.crm_id AND id = NEW.appointment_id AND anonymised;
      RETURN NULL;
    END
    $$;

CREATE TRIGGER participation_added AFTER INSERT ON participation FOR EACH ROW WHEN (NEW.name IS NULL AND NEW.state NOT IN ('BOOKED', 'RESERVED'))
  EXECUTE FUNCTION unmark_appointment();

CREATE TRIGGER participation_moved AFTER UPDATE ON participation FOR EACH ROW
  WHEN (NEW.appointment_id <> OLD.appointment_id OR NEW.version <> OLD.version AND NEW.reference LIKE 'anonymous-%')
  EXECUTE FUNCTION unmark_appointment();
