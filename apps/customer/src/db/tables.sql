-- The tables of customer. schema.ts says what the columns mean. Run once, and never changed: a change is a migration.

CREATE TABLE customer (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  provider_id uuid NOT NULL,
  provider_reference text NOT NULL,
  reference text NOT NULL,
  user_name text NOT NULL,
  email text,
  mobile text,
  note text,
  language text,
  version integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  provisional_until timestamptz,
  prepared_by text,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT customer_reference_key UNIQUE (crm_id, provider_reference, reference)
);
-- For the list of a provider's customers in the order of their creation.
CREATE INDEX customer_provider ON customer (crm_id, provider_id, id);
-- For everybody with an address, and for lists of them in the order of ids.
CREATE INDEX customer_by_address_and_id ON customer (crm_id, address_key(email), provider_id, id) WHERE email IS NOT NULL;
CREATE INDEX customer_to_decide ON customer (provisional_until) WHERE provisional_until IS NOT NULL;

CREATE TABLE erasure (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  customer_id uuid NOT NULL,
  state text NOT NULL DEFAULT 'checking' CHECK (state IN ('checking', 'requested', 'complete')),
  ignore_future_appointments boolean NOT NULL,
  notice bytea,
  requested_at timestamptz NOT NULL DEFAULT now(),
  published_at timestamptz NOT NULL DEFAULT now(),
  completed_at timestamptz,
  subject text NOT NULL DEFAULT 'customer' CHECK (subject IN ('customer', 'participation', 'address')),
  address text,
  requested_by text,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT erasure_customer_key UNIQUE (crm_id, customer_id)
);
CREATE UNIQUE INDEX erasure_address ON erasure (crm_id, (lower(normalize(address) COLLATE pg_c_utf8)))
 WHERE state = 'checking' AND address IS NOT NULL;
CREATE INDEX erasure_to_finish ON erasure (crm_id, published_at) WHERE state = 'checking';
CREATE INDEX erasure_open ON erasure (published_at) WHERE state <> 'complete';
CREATE INDEX erasure_completed ON erasure (completed_at) WHERE state = 'complete';
CREATE INDEX erasure_notice ON erasure (requested_at) WHERE notice IS NOT NULL;

-- The erasure of an address consists of those of everybody who is known with it, and of what is left of the address itself.
CREATE TABLE erasure_part (
  crm_id text NOT NULL,
  erasure_id uuid NOT NULL,
  part_id uuid NOT NULL,
  PRIMARY KEY (crm_id, erasure_id, part_id),
  FOREIGN KEY (crm_id, erasure_id) REFERENCES erasure,
  FOREIGN KEY (crm_id, part_id) REFERENCES erasure
);
CREATE INDEX erasure_part_of ON erasure_part (crm_id, part_id);

CREATE TABLE erasure_confirmation (
  crm_id text NOT NULL,
  erasure_id uuid NOT NULL,
  service text NOT NULL,
  confirmed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, erasure_id, service)
);
