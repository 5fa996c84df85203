-- The tables of notification. schema.ts says what the columns mean. Run once, and never changed: a change is a migration.

CREATE TABLE mail (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  event_id uuid NOT NULL,
  about_id uuid NOT NULL,
  version integer NOT NULL,
  template text NOT NULL,
  customer_id uuid,
  erasure_id uuid,
  request_id text NOT NULL,
  traceparent text,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'failed')),
  content jsonb,
  recipient text,
  attempts integer NOT NULL DEFAULT 0,
  uncertain boolean NOT NULL DEFAULT false,
  due_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  lease uuid,
  last_error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  held boolean NOT NULL DEFAULT false,
  user_id uuid,
  provider_id uuid,
  actor text,
  calendar_method text,
  resend_of uuid,
  sandbox boolean NOT NULL DEFAULT false,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT mail_intent_key UNIQUE (crm_id, event_id, about_id, template),
  CHECK ((state = 'pending') = (content IS NOT NULL) AND (state = 'pending') = (recipient IS NOT NULL))
);
CREATE INDEX mail_due ON mail (crm_id, due_at) WHERE state = 'pending';
CREATE INDEX mail_order ON mail (crm_id, about_id, version) WHERE state = 'pending';
CREATE INDEX mail_held ON mail (crm_id, recipient, due_at) WHERE state = 'pending' AND held;
CREATE INDEX mail_lease ON mail (lease) WHERE state = 'pending' AND lease IS NOT NULL;
-- At most one copy of a mail waits at a time.
CREATE UNIQUE INDEX mail_copy ON mail (crm_id, resend_of) WHERE state = 'pending' AND resend_of IS NOT NULL;
CREATE INDEX mail_about ON mail (crm_id, about_id, id);
CREATE INDEX mail_customer ON mail (crm_id, customer_id);
CREATE INDEX mail_user ON mail (crm_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX mail_erasure ON mail (crm_id, erasure_id) WHERE erasure_id IS NOT NULL;
CREATE INDEX mail_finished ON mail (state, finished_at) WHERE state <> 'pending';

CREATE TABLE unwritten_mail (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  event_id uuid NOT NULL,
  about_id uuid NOT NULL,
  version integer NOT NULL,
  template text NOT NULL,
  customer_id uuid NOT NULL,
  provider_id uuid,
  actor text NOT NULL,
  calendar_method text,
  request_id text NOT NULL,
  traceparent text,
  state text NOT NULL DEFAULT 'pending' CHECK (state = 'pending'),
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT now(),
  lease uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  previous_event_id uuid,
  failures integer NOT NULL DEFAULT 0,
  PRIMARY KEY (crm_id, id),
  CONSTRAINT unwritten_mail_intent_key UNIQUE (crm_id, event_id, about_id, template)
);
CREATE INDEX unwritten_mail_due ON unwritten_mail (crm_id, due_at) WHERE state = 'pending';
CREATE INDEX unwritten_mail_order ON unwritten_mail (crm_id, about_id, version);
CREATE INDEX unwritten_mail_lease ON unwritten_mail (lease) WHERE state = 'pending' AND lease IS NOT NULL;
CREATE INDEX unwritten_mail_customer ON unwritten_mail (crm_id, customer_id);
CREATE INDEX unwritten_mail_created ON unwritten_mail (created_at);

CREATE TABLE recent_mail (
  crm_id text NOT NULL,
  mail_id uuid NOT NULL,
  recipient_digest bytea NOT NULL,
  sent_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, mail_id),
  FOREIGN KEY (crm_id, mail_id) REFERENCES mail (crm_id, id) ON DELETE CASCADE
);
CREATE INDEX recent_mail_recipient ON recent_mail (crm_id, recipient_digest, sent_at);

-- What is kept of a mail of a sandbox goes with the row of the mail, and so with the erasure of its person.
CREATE TABLE sandbox_mail (
  crm_id text NOT NULL,
  mail_id uuid NOT NULL,
  recipient text NOT NULL,
  content jsonb NOT NULL,
  sent_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, mail_id),
  FOREIGN KEY (crm_id, mail_id) REFERENCES mail (crm_id, id) ON DELETE CASCADE
);
CREATE INDEX sandbox_mail_recipient ON sandbox_mail (crm_id, recipient, mail_id);
CREATE INDEX sandbox_mail_sent_at ON sandbox_mail (sent_at);

CREATE TABLE event_organizer (
  crm_id text NOT NULL,
  participation_id uuid NOT NULL,
  address text NOT NULL,
  keep_until timestamptz NOT NULL,
  PRIMARY KEY (crm_id, participation_id)
);
CREATE INDEX event_organizer_keep_until ON event_organizer (keep_until);

CREATE TABLE erased_customer (
  crm_id text NOT NULL,
  customer_id uuid NOT NULL,
  erased_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, customer_id)
);

CREATE TABLE erased_user (
  crm_id text NOT NULL,
  user_id uuid NOT NULL,
  erased_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (crm_id, user_id)
);
