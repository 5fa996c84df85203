-- The tables of identity. schema.ts says what the columns mean. Run once, and never changed: a change is a migration.
--
-- Every key starts with crm_id, except those that are unique across CRMs by their meaning: login names (interface 2.1), and the secrets and prefixes by which a
-- CRM or a verification is found in the first place.

CREATE TABLE crm (
  crm_id text NOT NULL,
  name text,
  language text NOT NULL DEFAULT 'de',
  time_zone text NOT NULL DEFAULT 'Europe/Berlin',
  sender_name text,
  sender_address text,
  notify_on_customer_deletion boolean NOT NULL DEFAULT true,
  requests_per_minute integer NOT NULL DEFAULT 6000,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  anonymise_after_days integer CHECK (anonymise_after_days BETWEEN 1 AND 36500),
  logo_url text,
  colour text,
  imprint text,
  sandbox boolean NOT NULL DEFAULT false,
  PRIMARY KEY (crm_id)
);

CREATE TABLE api_key (
  crm_id text NOT NULL REFERENCES crm,
  id uuid NOT NULL DEFAULT uuidv7(),
  prefix text NOT NULL,
  key_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT api_key_prefix_key UNIQUE (prefix),
  CONSTRAINT api_key_hash_key UNIQUE (key_hash)
);

CREATE TABLE app_user (
  crm_id text NOT NULL REFERENCES crm,
  id uuid NOT NULL DEFAULT uuidv7(),
  reference text,
  email text NOT NULL,
  email_key text NOT NULL,
  email_generated boolean NOT NULL,
  email_verified_at timestamptz,
  username text NOT NULL,
  username_key text NOT NULL,
  last_name text NOT NULL,
  first_name text,
  phone text,
  mobile text,
  language text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  email_derived_from text,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT app_user_reference_key UNIQUE (crm_id, reference),
  CONSTRAINT app_user_email_key UNIQUE (email_key),
  CONSTRAINT app_user_username_key UNIQUE (username_key)
);
-- By what people read as the same. Not unique: the locks on login names are.
CREATE INDEX app_user_by_address ON app_user (left(email_key, strpos(email_key, E'\n')), address_key(email));
CREATE INDEX app_user_by_username ON app_user (left(username_key, strpos(username_key, E'\n')), username_as_read(username));
CREATE INDEX app_user_by_derivation ON app_user (crm_id, address_key(email_derived_from)) WHERE email_derived_from IS NOT NULL;

CREATE TABLE email_verification (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  user_id uuid NOT NULL,
  token_hash bytea,
  expires_at timestamptz,
  used_at timestamptz,
  requested_at timestamptz[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, id),
  FOREIGN KEY (crm_id, user_id) REFERENCES app_user,
  CONSTRAINT email_verification_user_key UNIQUE (crm_id, user_id),
  CONSTRAINT email_verification_token_key UNIQUE (token_hash)
);

CREATE TABLE verification_mailbox (
  crm_id text NOT NULL REFERENCES crm,
  address_digest bytea NOT NULL,
  requested_at timestamptz[] NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (crm_id, address_digest)
);
CREATE INDEX verification_mailbox_expires_at ON verification_mailbox (expires_at);

CREATE TABLE account (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  reference text NOT NULL,
  owner_id uuid NOT NULL,
  branch text NOT NULL,
  invoice_address jsonb,
  invoice_contact_name text,
  invoice_company_name text,
  invoice_tax_id text,
  email text,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, id),
  FOREIGN KEY (crm_id, owner_id) REFERENCES app_user,
  CONSTRAINT account_reference_key UNIQUE (crm_id, reference)
);
-- This one and the next two are for the foreign keys, which look for what refers to a user on each deletion of one.
CREATE INDEX account_owner ON account (crm_id, owner_id);

CREATE TABLE provider (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  reference text NOT NULL,
  owner_id uuid NOT NULL,
  account_id uuid NOT NULL,
  name text NOT NULL,
  email text,
  mobile text,
  phone text,
  impressum text,
  branch text,
  subbranch text,
  time_zone text NOT NULL,
  version integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, id),
  FOREIGN KEY (crm_id, owner_id) REFERENCES app_user,
  FOREIGN KEY (crm_id, account_id) REFERENCES account,
  CONSTRAINT provider_reference_key UNIQUE (crm_id, reference)
);
CREATE INDEX provider_owner ON provider (crm_id, owner_id);

CREATE TABLE provider_staff (
  crm_id text NOT NULL,
  provider_id uuid NOT NULL,
  user_id uuid NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, provider_id, user_id),
  FOREIGN KEY (crm_id, provider_id) REFERENCES provider,
  FOREIGN KEY (crm_id, user_id) REFERENCES app_user
);
CREATE INDEX provider_staff_user ON provider_staff (crm_id, user_id);
