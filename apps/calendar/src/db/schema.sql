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
  starts_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  capacity bigint NOT NULL,
  taken bigint NOT NULL,
  accept_bookings boolean NOT NULL,
  state text NOT NULL DEFAULT 'ACTIVE'::text,
  content_digest bytea NOT NULL,
  when_empty text,
  anonymised boolean NOT NULL DEFAULT false,
  revision integer NOT NULL DEFAULT 1,
  event_count integer NOT NULL DEFAULT 0,
  buffer_before integer NOT NULL DEFAULT 0,
  buffer_after integer NOT NULL DEFAULT 0,
  metadata jsonb,
  CONSTRAINT appointment_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT appointment_check CHECK ((starts_at < ends_at)),
  CONSTRAINT appointment_state_check CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'CANCELLED'::text]))),
  CONSTRAINT appointment_taken_check CHECK ((taken >= 0)),
  CONSTRAINT appointment_when_empty_check CHECK ((when_empty = ANY (ARRAY['REMOVED'::text, 'CANCELLED'::text]))),
  CONSTRAINT appointment_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id),
  CONSTRAINT appointment_reference_key UNIQUE (crm_id, reference)
) WITH (fillfactor=85);
CREATE INDEX appointment_by_metadata ON public.appointment USING gin (jsonb_set('{}'::jsonb, ARRAY[(provider_id)::text], metadata) jsonb_path_ops) WITH (fastupdate=off) WHERE (metadata IS NOT NULL);
CREATE INDEX appointment_by_product ON public.appointment USING btree (crm_id, provider_id, product_reference, starts_at, id, ends_at);
CREATE INDEX appointment_by_resource ON public.appointment USING btree (crm_id, provider_id, resource_reference, starts_at, id, ends_at);
CREATE INDEX appointment_by_series ON public.appointment USING btree (crm_id, provider_id, series_id) WHERE (series_id IS NOT NULL);
CREATE INDEX appointment_by_start ON public.appointment USING btree (crm_id, provider_id, starts_at, id, ends_at);
CREATE INDEX appointment_cancelled ON public.appointment USING btree (crm_id, provider_id, starts_at, id, ends_at) WHERE (state = 'CANCELLED'::text);
CREATE INDEX appointment_long ON public.appointment USING btree (crm_id, provider_id, resource_reference, ends_at) WHERE ((ends_at - starts_at) > '24:00:00'::interval);
CREATE INDEX appointment_to_anonymise ON public.appointment USING btree (crm_id, ends_at) WHERE (NOT anonymised);
CREATE INDEX appointment_with_buffers ON public.appointment USING btree (crm_id, provider_id, resource_reference, starts_at) WHERE ((buffer_before > 0) OR (buffer_after > 0));
CREATE TRIGGER seats_changed BEFORE UPDATE ON public.appointment FOR EACH ROW WHEN ((old.anonymised AND (new.taken <> old.taken))) EXECUTE FUNCTION unmark_with_seats();
CREATE TRIGGER start_changed AFTER UPDATE OF starts_at ON public.appointment FOR EACH ROW WHEN ((new.starts_at <> old.starts_at)) EXECUTE FUNCTION requests_wait();

CREATE TABLE audit_entry (
  id uuid NOT NULL DEFAULT uuidv7(),
  recorded_at timestamp with time zone NOT NULL DEFAULT now(),
  operator text NOT NULL,
  action text NOT NULL,
  target text NOT NULL,
  request_id text NOT NULL,
  CONSTRAINT audit_entry_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_entry_recorded_at ON public.audit_entry USING btree (recorded_at);

CREATE TABLE booking_rules (
  crm_id text NOT NULL,
  provider_id uuid NOT NULL,
  minimum_notice integer NOT NULL,
  horizon integer,
  change_notice integer NOT NULL,
  confirmation text NOT NULL,
  page boolean NOT NULL,
  reminders integer[] NOT NULL,
  notify_provider boolean NOT NULL,
  max_per_person integer NOT NULL,
  offers jsonb NOT NULL,
  self_service boolean,
  daily_list integer,
  ask_mobile text NOT NULL DEFAULT 'NO'::text,
  embed_on text[] NOT NULL DEFAULT '{}'::text[],
  verify_email boolean NOT NULL DEFAULT false,
  access text NOT NULL DEFAULT 'PUBLIC'::text,
  CONSTRAINT booking_rules_pkey PRIMARY KEY (crm_id, provider_id),
  CONSTRAINT booking_rules_access_check CHECK ((access = ANY (ARRAY['PUBLIC'::text, 'INVITED'::text]))),
  CONSTRAINT booking_rules_ask_mobile_check CHECK ((ask_mobile = ANY (ARRAY['NO'::text, 'OPTIONAL'::text, 'REQUIRED'::text]))),
  CONSTRAINT booking_rules_confirmation_check CHECK ((confirmation = ANY (ARRAY['BOOKED'::text, 'REQUESTED'::text]))),
  CONSTRAINT booking_rules_daily_list_check CHECK (((daily_list >= 0) AND (daily_list <= 23))),
  CONSTRAINT booking_rules_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id)
);
CREATE TRIGGER daily_list_set AFTER INSERT OR UPDATE OF daily_list ON public.booking_rules FOR EACH ROW EXECUTE FUNCTION set_daily_list_mark();
CREATE TRIGGER reminders_set AFTER INSERT OR UPDATE OF reminders ON public.booking_rules FOR EACH ROW EXECUTE FUNCTION set_reminder_marks();

CREATE TABLE calendar_subscription (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  provider_id uuid NOT NULL,
  reference text NOT NULL,
  resource_reference text,
  contact_reference text,
  details text NOT NULL,
  secret_hash bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  digest bytea,
  changed_at timestamp with time zone,
  fingerprint text,
  compared_at timestamp with time zone,
  CONSTRAINT calendar_subscription_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT calendar_subscription_check CHECK ((num_nonnulls(digest, changed_at, fingerprint, compared_at) = ANY (ARRAY[0, 4]))),
  CONSTRAINT calendar_subscription_details_check CHECK ((details = ANY (ARRAY['NONE'::text, 'NAMES'::text, 'CONTACT'::text]))),
  CONSTRAINT calendar_subscription_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id),
  CONSTRAINT calendar_subscription_reference_key UNIQUE (crm_id, reference),
  CONSTRAINT calendar_subscription_secret_key UNIQUE (secret_hash)
);
CREATE INDEX calendar_subscription_by_provider ON public.calendar_subscription USING btree (crm_id, provider_id, id);

CREATE TABLE closed_provider (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  version integer NOT NULL,
  rules jsonb,
  closed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT closed_provider_pkey PRIMARY KEY (crm_id, id)
);
CREATE INDEX closed_provider_closed_at ON public.closed_provider USING btree (closed_at);

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
  refreshed_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  erased_at timestamp with time zone,
  required_version integer NOT NULL DEFAULT 0,
  reference_known boolean NOT NULL DEFAULT true,
  CONSTRAINT customer_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT customer_check CHECK (((erased_at IS NULL) OR ((reference IS NULL) AND (user_name IS NULL) AND (email IS NULL) AND (mobile IS NULL) AND (language IS NULL))))
);
CREATE INDEX customer_by_address ON public.customer USING btree (crm_id, provider_id, address_key(email)) WHERE (email IS NOT NULL);
CREATE INDEX customer_by_reference ON public.customer USING btree (crm_id, provider_id, reference, refreshed_at);
CREATE INDEX customer_by_refresh ON public.customer USING btree (crm_id, provider_id, refreshed_at);
CREATE INDEX customer_to_refresh ON public.customer USING btree (refreshed_at) WHERE ((NOT reference_known) AND (erased_at IS NULL));

CREATE TABLE daily_list_mark (
  crm_id text NOT NULL,
  provider_id uuid NOT NULL,
  set_at timestamp with time zone NOT NULL,
  listed_on date,
  CONSTRAINT daily_list_mark_pkey PRIMARY KEY (crm_id, provider_id),
  CONSTRAINT daily_list_mark_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES booking_rules(crm_id, provider_id) ON DELETE CASCADE
);

CREATE TABLE dead_letter (
  consumer text NOT NULL,
  event_id uuid NOT NULL,
  subject text NOT NULL,
  payload bytea NOT NULL,
  request_id text NOT NULL,
  error text NOT NULL,
  attempts integer NOT NULL,
  failed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT dead_letter_pkey PRIMARY KEY (consumer, event_id)
);

CREATE TABLE event_failure (
  consumer text NOT NULL,
  event_id uuid NOT NULL,
  failures integer NOT NULL,
  failed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT event_failure_pkey PRIMARY KEY (consumer, event_id)
);
CREATE INDEX event_failure_failed_at ON public.event_failure USING btree (failed_at);

CREATE TABLE idempotency_key (
  crm_id text NOT NULL,
  key_hash bytea NOT NULL,
  fingerprint bytea NOT NULL,
  resource_ids uuid[] NOT NULL,
  created boolean NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT idempotency_key_pkey PRIMARY KEY (crm_id, key_hash)
);
CREATE INDEX idempotency_key_created_at ON public.idempotency_key USING btree (created_at);
CREATE INDEX idempotency_key_resources ON public.idempotency_key USING gin (resource_ids);

CREATE TABLE inbox (
  consumer text NOT NULL,
  event_id uuid NOT NULL,
  processed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT inbox_pkey PRIMARY KEY (consumer, event_id)
);
CREATE INDEX inbox_processed_at ON public.inbox USING btree (processed_at);

CREATE TABLE invitation (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  provider_id uuid NOT NULL,
  customer_id uuid NOT NULL,
  product_reference text NOT NULL,
  bookings integer NOT NULL,
  anonymised integer NOT NULL DEFAULT 0,
  expires_at timestamp with time zone NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT invitation_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT invitation_crm_id_customer_id_fkey FOREIGN KEY (crm_id, customer_id) REFERENCES customer(crm_id, id),
  CONSTRAINT invitation_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id)
);
CREATE INDEX invitation_by_customer ON public.invitation USING btree (crm_id, customer_id);
CREATE INDEX invitation_by_provider ON public.invitation USING btree (crm_id, provider_id);
CREATE INDEX invitation_expiry ON public.invitation USING btree (expires_at);

CREATE TABLE invitation_booking (
  crm_id text NOT NULL,
  participation_id uuid NOT NULL,
  invitation_id uuid NOT NULL,
  CONSTRAINT invitation_booking_pkey PRIMARY KEY (crm_id, participation_id),
  CONSTRAINT invitation_booking_crm_id_invitation_id_fkey FOREIGN KEY (crm_id, invitation_id) REFERENCES invitation(crm_id, id) ON DELETE CASCADE,
  CONSTRAINT invitation_booking_crm_id_participation_id_fkey FOREIGN KEY (crm_id, participation_id) REFERENCES participation(crm_id, id) ON DELETE CASCADE
);
CREATE INDEX invitation_booking_by_invitation ON public.invitation_booking USING btree (crm_id, invitation_id);

CREATE TABLE outbox (
  id uuid NOT NULL DEFAULT uuidv7(),
  subject text NOT NULL,
  type text,
  payload bytea,
  request_id text NOT NULL,
  traceparent text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  sent_at timestamp with time zone,
  data json,
  CONSTRAINT outbox_pkey PRIMARY KEY (id),
  CONSTRAINT outbox_data_or_message CHECK ((num_nonnulls(data, payload) = 1))
);
CREATE INDEX outbox_sent_at ON public.outbox USING btree (sent_at);
CREATE INDEX outbox_unsent ON public.outbox USING btree (id) WHERE (sent_at IS NULL);

CREATE TABLE outbox_position (
  id boolean NOT NULL DEFAULT true,
  stream_created text NOT NULL,
  sequence bigint NOT NULL,
  event_id uuid NOT NULL,
  refill_after uuid,
  refill_until timestamp with time zone,
  CONSTRAINT outbox_position_pkey PRIMARY KEY (id),
  CONSTRAINT outbox_position_check CHECK (((refill_after IS NULL) = (refill_until IS NULL))),
  CONSTRAINT outbox_position_id_check CHECK (id)
);

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
  state text NOT NULL,
  exempt boolean NOT NULL,
  reserved_until timestamp with time zone,
  version integer NOT NULL DEFAULT 1,
  changed_at timestamp with time zone NOT NULL DEFAULT scheduling_now(),
  mail_event_id uuid,
  invited boolean NOT NULL DEFAULT false,
  attendance_confirmed_at timestamp with time zone,
  moves_by_person integer NOT NULL DEFAULT 0,
  arranged_at timestamp with time zone,
  untold_version integer,
  metadata jsonb,
  no_show boolean NOT NULL DEFAULT false,
  mailable_version integer,
  CONSTRAINT participation_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT participation_check CHECK (((state = 'RESERVED'::text) = (reserved_until IS NOT NULL))),
  CONSTRAINT participation_no_show_check CHECK (((state = 'BOOKED'::text) OR (NOT no_show))),
  CONSTRAINT participation_person_check CHECK (((customer_id IS NULL) OR (num_nonnulls(name, email, mobile) = 0))) NOT VALID,
  CONSTRAINT participation_state_check CHECK ((state = ANY (ARRAY['RESERVED'::text, 'REQUESTED'::text, 'BOOKED'::text, 'CANCELED'::text, 'DELETED'::text]))),
  CONSTRAINT participation_crm_id_appointment_id_fkey FOREIGN KEY (crm_id, appointment_id) REFERENCES appointment(crm_id, id) ON DELETE CASCADE,
  CONSTRAINT participation_crm_id_customer_id_fkey FOREIGN KEY (crm_id, customer_id) REFERENCES customer(crm_id, id),
  CONSTRAINT participation_reference_key UNIQUE (crm_id, reference)
) WITH (fillfactor=85);
CREATE INDEX participation_by_address ON public.participation USING btree (crm_id, address_key(email)) WHERE (email IS NOT NULL);
CREATE INDEX participation_by_appointment ON public.participation USING btree (crm_id, appointment_id, id);
CREATE INDEX participation_by_customer ON public.participation USING btree (crm_id, customer_id) WHERE (customer_id IS NOT NULL);
CREATE INDEX participation_by_metadata ON public.participation USING gin (jsonb_set('{}'::jsonb, ARRAY[crm_id], metadata) jsonb_path_ops) WITH (fastupdate=off) WHERE (metadata IS NOT NULL);
CREATE INDEX participation_expiry ON public.participation USING btree (reserved_until) WHERE (reserved_until IS NOT NULL);
CREATE INDEX participation_page_hold ON public.participation USING btree (crm_id, reserved_until) WHERE ((reserved_until IS NOT NULL) AND (reference ~~ 'page-%'::text));
CREATE INDEX participation_reserved ON public.participation USING btree (crm_id, appointment_id, reserved_until) WHERE (reserved_until IS NOT NULL);
CREATE TRIGGER participation_added AFTER INSERT ON public.participation FOR EACH ROW WHEN (((new.name IS NULL) AND (new.state <> ALL (ARRAY['BOOKED'::text, 'RESERVED'::text])))) EXECUTE FUNCTION unmark_appointment();
CREATE TRIGGER participation_anonymised BEFORE UPDATE ON public.participation FOR EACH ROW WHEN ((((new.metadata IS NOT NULL) OR new.no_show) AND (new.reference = ('anonymous-'::text || (new.id)::text)))) EXECUTE FUNCTION forget_notes();
CREATE TRIGGER participation_changed BEFORE UPDATE ON public.participation FOR EACH ROW EXECUTE FUNCTION set_changed_at();
CREATE TRIGGER participation_moved AFTER UPDATE ON public.participation FOR EACH ROW WHEN (((new.appointment_id <> old.appointment_id) OR ((new.version <> old.version) AND (new.reference ~~ 'anonymous-%'::text)))) EXECUTE FUNCTION unmark_appointment();
CREATE TRIGGER request_added AFTER INSERT ON public.participation FOR EACH ROW WHEN (((new.state = 'REQUESTED'::text) AND (new.mail_event_id IS NOT NULL))) EXECUTE FUNCTION participation_waits();
CREATE TRIGGER request_moved AFTER UPDATE ON public.participation FOR EACH ROW WHEN (((new.state = 'REQUESTED'::text) AND (new.mail_event_id IS NOT NULL) AND ((new.appointment_id <> old.appointment_id) OR (new.state <> old.state) OR (old.mail_event_id IS NULL)))) EXECUTE FUNCTION participation_waits();

CREATE TABLE participation_decision (
  crm_id text NOT NULL,
  participation_id uuid NOT NULL,
  confirmed boolean NOT NULL,
  recipient_id uuid NOT NULL,
  decided_at timestamp with time zone NOT NULL,
  CONSTRAINT participation_decision_pkey PRIMARY KEY (crm_id, participation_id),
  CONSTRAINT participation_decision_crm_id_participation_id_fkey FOREIGN KEY (crm_id, participation_id) REFERENCES participation(crm_id, id) ON DELETE CASCADE
);

CREATE TABLE participation_message (
  crm_id text NOT NULL,
  participation_id uuid NOT NULL,
  version integer NOT NULL,
  text text NOT NULL,
  CONSTRAINT participation_message_pkey PRIMARY KEY (crm_id, participation_id, version),
  CONSTRAINT participation_message_crm_id_participation_id_fkey FOREIGN KEY (crm_id, participation_id) REFERENCES participation(crm_id, id) ON DELETE CASCADE
);

CREATE TABLE participation_previous (
  crm_id text NOT NULL,
  participation_id uuid NOT NULL,
  version integer NOT NULL,
  starts_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  description text,
  address jsonb,
  CONSTRAINT participation_previous_pkey PRIMARY KEY (crm_id, participation_id, version),
  CONSTRAINT participation_previous_crm_id_participation_id_fkey FOREIGN KEY (crm_id, participation_id) REFERENCES participation(crm_id, id) ON DELETE CASCADE
);

CREATE TABLE pending_booking (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  provider_id uuid NOT NULL,
  choice uuid NOT NULL,
  offer text NOT NULL,
  description text NOT NULL,
  resource_reference text NOT NULL,
  starts_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  address jsonb,
  price_value numeric,
  price_currency text,
  name text NOT NULL,
  email text NOT NULL,
  mobile text,
  note text,
  language text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  customer_id uuid,
  CONSTRAINT pending_booking_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT pending_booking_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id)
);
CREATE INDEX pending_booking_by_address ON public.pending_booking USING btree (crm_id, address_key(email));
CREATE INDEX pending_booking_by_provider ON public.pending_booking USING btree (crm_id, provider_id);
CREATE INDEX pending_booking_expiry ON public.pending_booking USING btree (expires_at);

CREATE TABLE provider (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  reference text NOT NULL,
  time_zone text NOT NULL,
  version integer NOT NULL,
  CONSTRAINT provider_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT provider_reference_key UNIQUE (crm_id, reference)
);
CREATE UNIQUE INDEX provider_by_id ON public.provider USING btree (id);

CREATE TABLE reminder_mark (
  crm_id text NOT NULL,
  provider_id uuid NOT NULL,
  minutes integer NOT NULL,
  until timestamp with time zone NOT NULL,
  CONSTRAINT reminder_mark_pkey PRIMARY KEY (crm_id, provider_id, minutes),
  CONSTRAINT reminder_mark_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES booking_rules(crm_id, provider_id) ON DELETE CASCADE
);

CREATE TABLE removed_participation (
  crm_id text NOT NULL,
  customer_id uuid NOT NULL,
  participation_id uuid NOT NULL,
  appointment_id uuid NOT NULL,
  version integer NOT NULL,
  invited boolean NOT NULL DEFAULT true,
  CONSTRAINT removed_participation_pkey PRIMARY KEY (crm_id, customer_id, participation_id),
  CONSTRAINT removed_participation_crm_id_appointment_id_fkey FOREIGN KEY (crm_id, appointment_id) REFERENCES appointment(crm_id, id) ON DELETE CASCADE
);

CREATE TABLE resource_block (
  crm_id text NOT NULL,
  id uuid NOT NULL,
  provider_id uuid NOT NULL,
  reference text NOT NULL,
  resource_reference text NOT NULL,
  starts_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  note text,
  CONSTRAINT resource_block_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT resource_block_check CHECK ((starts_at < ends_at)),
  CONSTRAINT resource_block_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id),
  CONSTRAINT resource_block_reference_key UNIQUE (crm_id, reference)
);
CREATE INDEX resource_block_by_end ON public.resource_block USING btree (crm_id, provider_id, resource_reference, ends_at);
CREATE INDEX resource_block_by_start ON public.resource_block USING btree (crm_id, provider_id, resource_reference, starts_at, id, ends_at);
CREATE INDEX resource_block_long ON public.resource_block USING btree (crm_id, provider_id, resource_reference, ends_at) WHERE ((ends_at - starts_at) > '24:00:00'::interval);

CREATE TABLE resource_hours (
  crm_id text NOT NULL,
  provider_id uuid NOT NULL,
  resource_reference text NOT NULL,
  content jsonb NOT NULL,
  revision uuid NOT NULL,
  time_zone text NOT NULL,
  made_from date NOT NULL,
  made_until date NOT NULL,
  due_at timestamp with time zone NOT NULL,
  CONSTRAINT resource_hours_pkey PRIMARY KEY (crm_id, provider_id, resource_reference),
  CONSTRAINT resource_hours_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id)
);
CREATE INDEX resource_hours_due ON public.resource_hours USING btree (due_at);

CREATE TABLE sandbox_clock (
  crm_id text NOT NULL,
  ahead_ms bigint NOT NULL,
  set_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT sandbox_clock_pkey PRIMARY KEY (crm_id)
);

CREATE TABLE shown_appointment (
  crm_id text NOT NULL,
  subscription_id uuid NOT NULL,
  appointment_id uuid NOT NULL,
  digest bytea NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  CONSTRAINT shown_appointment_pkey PRIMARY KEY (crm_id, subscription_id, appointment_id),
  CONSTRAINT shown_appointment_crm_id_subscription_id_fkey FOREIGN KEY (crm_id, subscription_id) REFERENCES calendar_subscription(crm_id, id) ON DELETE CASCADE
);

CREATE TABLE timeslot (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  provider_id uuid NOT NULL,
  reference text NOT NULL,
  resource_reference text NOT NULL,
  starts_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  raster bigint NOT NULL,
  default_capacity bigint NOT NULL,
  default_accept_bookings boolean NOT NULL,
  address jsonb,
  state text NOT NULL,
  content_digest bytea NOT NULL,
  from_hours text,
  buffer_before integer NOT NULL DEFAULT 0,
  buffer_after integer NOT NULL DEFAULT 0,
  CONSTRAINT timeslot_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT timeslot_check CHECK ((starts_at < ends_at)),
  CONSTRAINT timeslot_from_hours_check CHECK ((from_hours = ANY (ARRAY['MADE'::text, 'HIDDEN'::text, 'CHANGED'::text]))),
  CONSTRAINT timeslot_state_check CHECK ((state = ANY (ARRAY['CREATED'::text, 'BOOKABLE'::text]))),
  CONSTRAINT timeslot_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id),
  CONSTRAINT timeslot_reference_key UNIQUE (crm_id, reference)
);
CREATE INDEX timeslot_by_resource ON public.timeslot USING btree (crm_id, provider_id, resource_reference, starts_at, id, ends_at);
CREATE INDEX timeslot_by_start ON public.timeslot USING btree (crm_id, provider_id, starts_at, id, ends_at);
CREATE INDEX timeslot_changed ON public.timeslot USING btree (crm_id, provider_id, resource_reference) WHERE (from_hours = 'CHANGED'::text);
CREATE INDEX timeslot_long ON public.timeslot USING btree (crm_id, provider_id, ends_at) WHERE ((ends_at - starts_at) > '24:00:00'::interval);
CREATE INDEX timeslot_long_by_resource ON public.timeslot USING btree (crm_id, provider_id, resource_reference, ends_at) WHERE ((ends_at - starts_at) > '24:00:00'::interval);
CREATE UNIQUE INDEX timeslot_of_hours ON public.timeslot USING btree (crm_id, provider_id, resource_reference, content_digest) WHERE (from_hours IS NOT NULL);
CREATE INDEX timeslot_with_buffers ON public.timeslot USING btree (crm_id, provider_id, resource_reference, starts_at) WHERE ((buffer_before > 0) OR (buffer_after > 0));

CREATE TABLE verification_mail (
  crm_id text NOT NULL,
  pending_booking_id uuid NOT NULL,
  address_digest bytea NOT NULL,
  sent_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT verification_mail_pkey PRIMARY KEY (crm_id, pending_booking_id)
);
CREATE INDEX verification_mail_age ON public.verification_mail USING btree (sent_at);
CREATE INDEX verification_mail_by_address ON public.verification_mail USING btree (crm_id, address_digest, sent_at);

CREATE TABLE waiting_request (
  crm_id text NOT NULL,
  participation_id uuid NOT NULL,
  remind_at timestamp with time zone,
  tell_at timestamp with time zone,
  due_at timestamp with time zone DEFAULT LEAST(remind_at, tell_at),
  CONSTRAINT waiting_request_pkey PRIMARY KEY (crm_id, participation_id),
  CONSTRAINT waiting_request_crm_id_participation_id_fkey FOREIGN KEY (crm_id, participation_id) REFERENCES participation(crm_id, id) ON DELETE CASCADE
);
CREATE INDEX waiting_request_due ON public.waiting_request USING btree (due_at);
CREATE INDEX waiting_request_of_crm ON public.waiting_request USING btree (crm_id, due_at);

CREATE OR REPLACE FUNCTION public.add_message(participation participation, message text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF message IS NOT NULL THEN
    INSERT INTO participation_message (crm_id, participation_id, version, text) VALUES (participation.crm_id, participation.id, participation.version, message);
  END IF;
END
$function$;

CREATE OR REPLACE FUNCTION public.add_prepared_customer(the_crm text, the_provider uuid, the_reference text, prepared jsonb)
 RETURNS customer
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_id uuid := prepared ->> 'id';
  person customer%ROWTYPE;
BEGIN
  INSERT INTO customer (crm_id, id, provider_id, reference, user_name, email, mobile, language, version, reference_known)
  VALUES (
    the_crm, the_id, the_provider, the_reference, prepared ->> 'userName', prepared ->> 'email', prepared ->> 'mobile', prepared ->> 'language', 0, false)
  ON CONFLICT (crm_id, id) DO NOTHING;
  -- Somebody else may have booked for it, or excluded it.
  SELECT * INTO person FROM customer
   WHERE crm_id = the_crm AND id = the_id AND reference = the_reference AND version = 0 AND required_version = 0 FOR KEY SHARE;
  RETURN person;
END
$function$;

CREATE OR REPLACE FUNCTION public.address_digest(address text)
 RETURNS bytea
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT sha256(convert_to(address_key(address), 'UTF8'))
$function$;

CREATE OR REPLACE FUNCTION public.address_key(address text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
DECLARE
  -- Default_Ignorable_Code_Point.
  invisible CONSTANT text := '[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]';
  -- Kinds of sigma, and of Cyrillic letters.
  unusual CONSTANT text := U&'\03F2\03F9\+01D6D3\+01D70D\+01D747\+01D781\+01D7BB\1C80\1C81\1C82\1C83\1C84\1C85\1C86\1C87\1C88';
  usual CONSTANT text := U&'\03C3\03C3\03C3\03C3\03C3\03C3\03C3\0432\0434\043E\0441\0442\0442\044A\0463\A64B';
  local text;
  domain text;
  label text;
  labels text[] := '{}';
  digits text;
  -- The rest is the state of the decoding, by the names of RFC 3492.
  output integer[];
  place integer;
  n bigint;
  i bigint;
  old_i bigint;
  w bigint;
  k bigint;
  t bigint;
  digit bigint;
  delta bigint;
  bias bigint;
BEGIN
  -- Nearly all.
  IF address COLLATE "C" ~ '^[ -~]*$' AND address COLLATE "C" !~* '[@.]xn--' THEN RETURN lower(address COLLATE "C"); END IF;

  domain := coalesce(substring(address COLLATE "C" FROM '@([^@]*)$'), '');
  local := normalize(regexp_replace(left(address, length(address) - length(domain)) COLLATE "C", invisible, '', 'g'), NFC);
  -- A capital sigma has two small forms.
  local := replace(normalize(lower(local COLLATE pg_unicode_fast), NFC), U&'\03C2', U&'\03C3');

  FOR pass IN 1 .. 2 LOOP
    -- As UTS 46 maps names: NFKC and lower case, and some letters that are not in lower case there.
    domain := replace(normalize(translate(domain, unusual, usual), NFKD), U&'\0345', U&'\03B9');
    domain := normalize(regexp_replace(lower(domain COLLATE pg_c_utf8) COLLATE "C", invisible, '', 'g'), NFKC);
    -- A name that was decoded may need it again.
    EXIT WHEN pass = 2 OR domain COLLATE "C" !~ '(^|\.)xn--';

    <<each_label>>
    FOREACH label IN ARRAY string_to_array(domain, '.') LOOP
      labels := labels || label;
      CONTINUE WHEN label COLLATE "C" !~ '^xn--[!-~]*[a-z0-9]$';
      digits := substring(label COLLATE "C" FROM '[a-z0-9]+$');
      output := ARRAY(SELECT ascii(letter) FROM regexp_split_to_table(substr(label, 5, greatest(length(label) - length(digits) - 5, 0)), '') AS letter WHERE letter <> '');
      place := 1;
      n := 128;
      i := 0;
      bias := 72;
      WHILE place <= length(digits) LOOP
        old_i := i;
        w := 1;
        k := 36;
        LOOP
          CONTINUE each_label WHEN place > length(digits);
          digit := strpos('abcdefghijklmnopqrstuvwxyz0123456789', substr(digits, place, 1)) - 1;
          place := place + 1;
          i := i + digit * w;
          t := least(greatest(k - bias, 1), 26);
          EXIT WHEN digit < t;
          w := w * (36 - t);
          k := k + 36;
          -- Further than from the first character to the last one, at any place of a label.
          CONTINUE each_label WHEN greatest(i, w) > 100000000;
        END LOOP;

        delta := CASE WHEN old_i = 0 THEN i / 700 ELSE (i - old_i) / 2 END;
        delta := delta + delta / (cardinality(output) + 1);
        k := 0;
        WHILE delta > 455 LOOP
          delta := delta / 35;
          k := k + 36;
        END LOOP;
        bias := k + 36 * delta / (delta + 38);

        n := n + i / (cardinality(output) + 1);
        i := i % (cardinality(output) + 1);
        CONTINUE each_label WHEN n > 1114111 OR n BETWEEN 55296 AND 57343;
        output := output[:i] || n::integer || output[i + 1:];
        i := i + 1;
      END LOOP;
      labels[cardinality(labels)] := (SELECT string_agg(chr(letter), '' ORDER BY position) FROM unnest(output) WITH ORDINALITY AS letters (letter, position));
    END LOOP;
    domain := array_to_string(labels, '.');
  END LOOP;
  RETURN local || domain;
END
$function$;

CREATE OR REPLACE FUNCTION public.append_appointment_changed(changed appointment, change text, origin jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  is_new boolean := change = 'CREATED';
BEGIN
  INSERT INTO outbox (subject, data, request_id, traceparent)
  VALUES (
    'scheduling.calendar.v1.appointment-changed',
    json_build_object(
      'crmId', changed.crm_id,
      'appointmentId', changed.id,
      'providerId', changed.provider_id,
      'change', 'APPOINTMENT_CHANGE_' || change,
      'fromState', CASE WHEN NOT is_new THEN 'APPOINTMENT_STATE_' || changed.state END,
      'version', changed.revision + CASE WHEN is_new THEN 0 WHEN changed.state = 'ACTIVE' THEN 1 ELSE 2 END,
      'actor', coalesce(origin ->> 'actor', 'service'),
      'ordinal', CASE WHEN is_new THEN 1 ELSE changed.event_count + 1 END,
      'capacity', changed.capacity::integer),
    coalesce(origin ->> 'request_id', gen_random_uuid()::text), origin ->> 'traceparent');
END
$function$;

CREATE OR REPLACE FUNCTION public.append_participation_changed(change participation, provider uuid, cause text, from_state text, origin jsonb, previous_mail_event uuid, ordinal integer, source uuid DEFAULT NULL::uuid, source_ordinal integer DEFAULT NULL::integer)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO outbox (id, subject, data, request_id, traceparent)
  VALUES (
    CASE WHEN has_mail(origin) THEN change.mail_event_id ELSE uuidv7() END,
    participation_subject(has_mail(origin)),
    participation_changed_data(change, provider, cause, from_state, origin, previous_mail_event, ordinal, source, source_ordinal),
    coalesce(origin ->> 'request_id', gen_random_uuid()::text), origin ->> 'traceparent');
END
$function$;

CREATE OR REPLACE FUNCTION public.append_participation_removed(change participation, provider uuid, origin jsonb, ordinal integer)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  from_state text := change.state;
BEGIN
  change.state := NULL;
  change.version := change.version + 1;
  PERFORM append_participation_changed(
    change, provider, 'REMOVED', from_state, coalesce(origin, '{}') || '{"hasMail": false}', NULL, ordinal);
END
$function$;

CREATE OR REPLACE FUNCTION public.appointment_answer(changed appointment, request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
BEGIN
  RETURN jsonb_build_object(
    'id', changed.id, 'created', false,
    'appointment', (SELECT content FROM appointment_json(changed, scheduling_now(changed.crm_id), (request ->> 'archiveAfterDays')::integer)));
END
$function$;

CREATE OR REPLACE FUNCTION public.appointment_json(appointment appointment, present timestamp with time zone, archive_after_days integer)
 RETURNS TABLE(content text)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT (SELECT row_to_json(fields)::text FROM (
    SELECT
      appointment.reference,
      appointment.accept_bookings AS "acceptBookings",
      (SELECT content FROM location_json(appointment.address)) AS address,
      appointment.ends_at <= archived_until(present, archive_after_days) AS archived,
      appointment.capacity,
      appointment.contact_reference AS "contactReference",
      appointment.description,
      moment_json(appointment.starts_at) AS start,
      moment_json(appointment.ends_at) AS "end",
      appointment.notes,
      appointment.metadata,
      array_to_json(ARRAY(
        SELECT participation_json.content
          FROM participation
          LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
         CROSS JOIN participation_json(participation, appointment.reference, customer)
         WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id
           AND (participation.reserved_until IS NULL OR participation.reserved_until > present)
         ORDER BY participation.id)) AS participations,
      (SELECT content FROM price_json(appointment.price_value, appointment.price_currency)) AS price,
      appointment.product_reference AS "productReference",
      appointment.resource_reference AS "resourceReference",
      appointment.series_id AS "seriesId",
      appointment.state
  ) AS fields)
$function$;

CREATE OR REPLACE FUNCTION public.appointment_slot_details(appointment appointment, taken bigint)
 RETURNS TABLE(content json)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT content FROM slot_details(
    appointment.resource_reference, appointment.reference, appointment.product_reference, appointment.description, appointment.capacity,
    greatest(0, appointment.capacity - taken), appointment.address, appointment.price_value, appointment.price_currency)
$function$;

CREATE OR REPLACE FUNCTION public.archived_until(present timestamp with time zone, archive_after_days integer)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$
  SELECT present - make_interval(hours => archive_after_days * 24)
$function$;

CREATE OR REPLACE FUNCTION public.await_decision(the_crm text, the_appointment uuid, the_participation uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  present timestamptz := scheduling_now(the_crm);
  start timestamptz;
  half timestamptz;
  reminder timestamptz;
  ids uuid[] := ARRAY[the_participation];
BEGIN
  SELECT starts_at INTO start FROM appointment WHERE crm_id = the_crm AND id = the_appointment AND starts_at > present;
  IF start IS NULL THEN RETURN; END IF;
  IF the_participation IS NULL THEN
    SELECT array_agg(id) INTO ids FROM participation
     WHERE crm_id = the_crm AND appointment_id = the_appointment AND state = 'REQUESTED' AND mail_event_id IS NOT NULL;
  END IF;

  half := present + (start - present) / 2;
  -- The mail about the request has just been read.
  reminder := greatest(half, present + interval '1 hour');
  INSERT INTO waiting_request (crm_id, participation_id, remind_at, tell_at)
  SELECT the_crm, id, CASE WHEN reminder < start THEN reminder END, greatest(half, start - interval '12 hours') FROM unnest(ids) AS id
  ON CONFLICT (crm_id, participation_id) DO UPDATE SET remind_at = excluded.remind_at, tell_at = excluded.tell_at;
END
$function$;

CREATE OR REPLACE FUNCTION public.book_chosen_place(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  held participation%ROWTYPE;
  target appointment%ROWTYPE;
BEGIN
  SELECT participation.* INTO held
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
   WHERE participation.crm_id = the_crm AND participation.reference = request ->> 'holdReference' AND participation.reserved_until > scheduling_now(the_crm)
     AND appointment.provider_id = the_provider;
  IF held.id IS DISTINCT FROM (request ->> 'heldId')::uuid THEN RETURN retry_answer('stale'); END IF;
  IF held.id IS NULL THEN RETURN book_slot(request); END IF;

  SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND id = held.appointment_id FOR NO KEY UPDATE;
  IF epoch_ms(target.starts_at) <> (request ->> 'shownStart')::bigint OR epoch_ms(target.ends_at) <> (request ->> 'shownEnd')::bigint THEN
    RETURN unavailable_answer('closed');
  END IF;
  IF (target.price_value, target.price_currency) IS DISTINCT FROM ((request ->> 'priceValue')::numeric, request ->> 'priceCurrency') THEN
    RETURN error_answer('booking_page.changed');
  END IF;
  RETURN confirm_hold(request || jsonb_build_object('participationId', held.id));
END
$function$;

CREATE OR REPLACE FUNCTION public.book_page_time(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  the_invitation uuid := request ->> 'invitationId';
  made uuid;
  answer jsonb;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('page choice ' || the_crm || ' ' || (request ->> 'holdReference'), 0));
  made := (
    SELECT participation.id
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
     WHERE participation.crm_id = the_crm AND participation.reference IN (request ->> 'holdReference', request ->> 'reference')
       AND appointment.provider_id = the_provider AND participation.state <> 'RESERVED' AND participation.customer_id IS NOT NULL
     LIMIT 1);
  IF made IS NOT NULL THEN RETURN jsonb_build_object('id', made, 'created', false); END IF;

  -- After the lock of the choice, in all calls.
  IF the_invitation IS NOT NULL THEN
    answer := refusal_of_invitation(the_crm, the_invitation, (request ->> 'invitedId')::uuid);
    IF answer IS NOT NULL THEN RETURN answer; END IF;
    answer := book_chosen_place(request);
    IF answer ? 'id' THEN PERFORM note_invited(the_crm, the_invitation, (request ->> 'invitedId')::uuid, (answer ->> 'id')::uuid); END IF;
    RETURN answer;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws(' ', 'page address', request ->> 'providerId', address_key(request ->> 'email')), 0));
  IF future_bookings(the_crm, the_provider, request ->> 'email') >= (request ->> 'maxPerPerson')::integer
     OR page_bookings_of_day(the_crm, the_provider, request ->> 'email') >= (request ->> 'maxOfDay')::integer THEN
    RETURN error_answer('booking_page.limit_reached');
  END IF;
  RETURN book_chosen_place(request);
END
$function$;

CREATE OR REPLACE FUNCTION public.book_slot(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  opening timeslot%ROWTYPE;
  known record;
  claim record;
  target appointment%ROWTYPE;
  person customer%ROWTYPE;
  reclaimed jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  IF request ? 'timeslotReference' THEN
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'timeslotReference';
    IF NOT FOUND THEN RETURN missing_timeslot_answer(request ->> 'timeslotReference'); END IF;
  END IF;
  SELECT participation.id, participation.customer_id, participation.reserved_until <= scheduling_now(the_crm) AS is_over, is_place(appointment, opening, request) AS same_place
    INTO known
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
   WHERE participation.crm_id = the_crm AND participation.reference = request ->> 'reference';
  IF FOUND THEN
    SELECT * INTO person FROM known_customer(the_crm, the_provider, request ->> 'customerReference');
    RETURN CASE
      WHEN known.is_over THEN retry_answer('reference')
      WHEN NOT known.same_place THEN error_answer('participation.reference_taken')
      -- A customer who does not exist yet is not the one of a participation that exists.
      WHEN person.id IS NULL AND request ->> 'customerReference' IS NOT NULL THEN retry_answer('customer') || error_answer('participation.reference_taken')
      WHEN known.customer_id IS DISTINCT FROM person.id THEN error_answer('participation.reference_taken')
      ELSE present_booking_answer(the_crm, known.id, request ->> 'timeslotReference') END;
  END IF;

  SELECT * INTO claim FROM claim_place(request, opening, NULL);
  reclaimed := jsonb_build_object('reclaimed', claim.reclaimed);
  -- The place may be that of this very booking, made by a request that was faster to lock it.
  IF is_unavailable(claim.rejection) AND EXISTS (SELECT FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference') THEN
    RETURN reclaimed || retry_answer('stale');
  END IF;
  IF claim.rejection IS NOT NULL THEN RETURN reclaimed || claim.rejection; END IF;
  IF request ->> 'customerReference' IS NOT NULL THEN
    person := customer_to_book_for(request, the_provider, request ->> 'customerReference');
    IF person.id IS NULL THEN RETURN reclaimed || retry_answer('customer'); END IF;
  END IF;

  target := take_place(request, claim.opening, claim.target, claim.slot_start, claim.slot_end, takes_seat(request ->> 'state')::integer);
  RETURN reclaimed || insert_participation(request, target, person)
    || jsonb_build_object('slot', slot_of(target, target.taken, request ->> 'timeslotReference'));
END
$function$;

CREATE OR REPLACE FUNCTION public.booking_bounds(the_crm text, the_provider uuid, present timestamp with time zone, ignores_notice boolean)
 RETURNS TABLE(earliest timestamp with time zone, latest timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT date_trunc('milliseconds', present + interval '999 microseconds') + make_interval(mins => CASE WHEN ignores_notice THEN 0 ELSE coalesce(minimum_notice, 0) END),
         coalesce(date_trunc('milliseconds', present) + make_interval(hours => horizon * 24), 'infinity')
    FROM (VALUES (1)) AS one LEFT JOIN booking_rules ON crm_id = the_crm AND provider_id = the_provider
$function$;

CREATE OR REPLACE FUNCTION public.booking_content(the_crm text, the_participation uuid, timeslot_reference text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  present timestamptz := scheduling_now(the_crm);
BEGIN
  RETURN (
    SELECT jsonb_build_object('participation', participation_text(the_crm, the_participation), 'slot', slot_of(appointment, seats.taken, timeslot_reference))
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
     CROSS JOIN occupancy(appointment, present) AS seats
     WHERE participation.crm_id = the_crm AND participation.id = the_participation
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present));
END
$function$;

CREATE OR REPLACE FUNCTION public.call_once(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_key bytea := decode(request ->> 'keyHash', 'hex');
  the_fingerprint bytea := decode(request ->> 'fingerprint', 'hex');
  kept idempotency_key%ROWTYPE;
  answer jsonb;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended((request ->> 'keyHash') || ' ' || the_crm, 0)) THEN RETURN jsonb_build_object('key', 'in_flight'); END IF;

  SELECT * INTO kept FROM idempotency_key
   WHERE crm_id = the_crm AND key_hash = the_key AND created_at > now() - (request ->> 'lifetime')::interval;
  IF kept.fingerprint <> the_fingerprint THEN RETURN jsonb_build_object('key', 'reused'); END IF;
  IF kept.fingerprint = the_fingerprint THEN
    RETURN jsonb_build_object('key', 'used', 'resourceIds', kept.resource_ids, 'created', kept.created);
  END IF;

  EXECUTE format('SELECT %I($1)', request ->> 'name') INTO answer USING request -> 'request';
  IF answer ->> 'id' IS NOT NULL THEN
    INSERT INTO idempotency_key (crm_id, key_hash, fingerprint, resource_ids, created)
    VALUES (the_crm, the_key, the_fingerprint, ARRAY[(answer ->> 'id')::uuid], (answer ->> 'created')::boolean)
    ON CONFLICT (crm_id, key_hash) DO UPDATE
       SET fingerprint = excluded.fingerprint, resource_ids = excluded.resource_ids, created = excluded.created, created_at = excluded.created_at;
  END IF;
  RETURN jsonb_build_object('key', 'new', 'answer', answer);
END
$function$;

CREATE OR REPLACE FUNCTION public.cancel_appointment(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  locked record;
  answer jsonb := '{}';
  target appointment%ROWTYPE;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_appointment(request, request ->> 'reference');
  target := locked.target;
  IF target.id IS NULL THEN RETURN error_answer('appointment.not_found') || jsonb_build_object('reclaimed', locked.reclaimed); END IF;
  IF target.state = 'ACTIVE' THEN
    answer := cancel_participations(target, request);
    target.event_count := target.event_count + (answer #>> '{entered,CANCELED}')::integer;
    PERFORM append_appointment_changed(target, 'CANCELLED', request -> 'origin');
    UPDATE appointment SET state = 'CANCELLED', taken = 0, event_count = target.event_count + 1 WHERE crm_id = target.crm_id AND id = target.id RETURNING * INTO target;
  END IF;
  RETURN appointment_answer(target, request) || answer || jsonb_build_object('reclaimed', locked.reclaimed);
END
$function$;

CREATE OR REPLACE FUNCTION public.cancel_own_booking(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  locked record;
  rights record;
  answer jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  IF locked.rejection IS NULL THEN
    SELECT * INTO rights FROM own_booking_rights(locked.present, locked.target, scheduling_now(request ->> 'crmId'));
    answer := CASE
      WHEN NOT rights.is_cancellable AND (locked.present).state <> 'CANCELED' THEN link_refusal(rights.cancellable_until)
      WHEN rights.is_cancellable AND has_other_start(locked.target, request) THEN error_answer('link.changed')
      ELSE change_state(request || '{"state": "CANCELED", "ignoreCapacity": false, "sendMails": true}', locked.target, locked.present, NULL) END;
  END IF;
  RETURN coalesce(locked.rejection, answer) || jsonb_build_object('reclaimed', locked.reclaimed);
END
$function$;

CREATE OR REPLACE FUNCTION public.cancel_participations(target appointment, request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  with_mail jsonb := request -> 'origin' || jsonb_build_object('hasMail', true, 'changeId', gen_random_uuid());
  number integer;
  freed integer;
BEGIN
  WITH cancelled AS (
    UPDATE participation
       SET state = 'CANCELED', no_show = false, version = participation.version + 1, mailable_version = NULL, reserved_until = NULL,
           mail_event_id = CASE WHEN is_active(participation.state) THEN new_mail_event(with_mail) ELSE mail_event_id END
     WHERE crm_id = target.crm_id AND appointment_id = target.id AND state <> 'CANCELED'
    RETURNING old AS before, new AS after)
  SELECT count(*), count(*) FILTER (WHERE takes_seat((before).state)),
         count(add_message(after, CASE WHEN is_active((before).state) THEN request ->> 'message' END)),
         count(append_participation_changed(
           after, target.provider_id, 'APPOINTMENT_CANCELLED', (before).state, CASE WHEN is_active((before).state) THEN with_mail ELSE request -> 'origin' END,
           (before).mail_event_id, target.event_count + ordinal))
    INTO number, freed
    FROM (SELECT *, row_number() OVER (ORDER BY (after).id)::integer AS ordinal FROM cancelled) AS changes;
  RETURN jsonb_build_object('entered', jsonb_build_object('CANCELED', number), 'seats', -freed);
END
$function$;

CREATE OR REPLACE FUNCTION public.change_state(request jsonb, target appointment, present participation, owner_reference text)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  new_state text := coalesce(request ->> 'state', present.state);
  new_metadata jsonb := CASE WHEN request ? 'metadata' THEN nullif(request -> 'metadata', 'null') ELSE present.metadata END;
  new_no_show boolean := new_state = 'BOOKED' AND coalesce((request ->> 'noShow')::boolean, present.no_show);
  seats integer := takes_seat(new_state)::integer - takes_seat(present.state)::integer;
  becomes_exempt boolean := coalesce((request ->> 'ignoreCapacity')::boolean, false);
  rejection jsonb;
  owner customer%ROWTYPE;
  origin jsonb;
  event_number integer;
  changed participation%ROWTYPE;
BEGIN
  IF new_state <> present.state THEN rejection := transition_error(present.state, new_state, target.state); END IF;
  rejection := coalesce(rejection, note_error(request, target, present, new_state));
  IF rejection IS NOT NULL THEN RETURN rejection; END IF;
  IF new_state = present.state THEN RETURN note_participation(request, target, present, new_metadata, new_no_show); END IF;
  -- Nobody knows yet for whom the seat is held.
  IF new_state = 'BOOKED' AND present.state = 'RESERVED' AND present.customer_id IS NULL AND present.name IS NULL AND owner_reference IS NULL THEN
    RETURN error_answer('booking.customer_missing');
  END IF;
  IF seats > 0 AND NOT (present.exempt OR becomes_exempt) AND target.taken >= target.capacity THEN RETURN no_seat_answer(target); END IF;
  IF owner_reference IS NOT NULL THEN
    owner := customer_to_book_for(request, target.provider_id, owner_reference);
    IF owner.id IS NULL THEN RETURN retry_answer('customer'); END IF;
  END IF;

  UPDATE appointment SET taken = taken + seats, event_count = event_count + 1 WHERE crm_id = the_crm AND id = target.id RETURNING event_count INTO event_number;
  origin := request -> 'origin' || jsonb_build_object('hasMail', (request ->> 'sendMails')::boolean
    AND (SELECT has_mail FROM transitions() WHERE from_state = present.state AND to_state = new_state));
  UPDATE participation
     SET state = new_state, metadata = new_metadata, no_show = new_no_show, version = version + 1, mailable_version = NULL, arranged_at = NULL, reserved_until = NULL, exempt = exempt OR becomes_exempt, customer_id = coalesce(owner.id, customer_id),
         mail_event_id = coalesce(new_mail_event(origin), mail_event_id), invited = invited OR invites(origin, new_state),
         -- Whoever was embedded is the customer from now on, whose data the customer service has.
         name = CASE WHEN owner.id IS NULL THEN name END, email = CASE WHEN owner.id IS NULL THEN email END, mobile = CASE WHEN owner.id IS NULL THEN mobile END,
         note = CASE WHEN owner.id IS NULL THEN note ELSE request ->> 'note' END
   WHERE crm_id = the_crm AND id = present.id
  RETURNING * INTO changed;
  IF owner.id IS NOT NULL AND present.name IS NOT NULL THEN
    -- They are digests of the embedded person, too.
    UPDATE appointment SET content_digest = '' WHERE crm_id = the_crm AND id = target.id;
    DELETE FROM idempotency_key WHERE crm_id = the_crm AND resource_ids @> ARRAY[target.id];
  END IF;
  PERFORM add_message(changed, request ->> 'message');
  PERFORM append_participation_changed(changed, target.provider_id, 'UPDATED', present.state, origin, present.mail_event_id, event_number);
  IF NOT is_active(new_state) THEN PERFORM end_if_empty(the_crm, target.id, origin); END IF;
  RETURN jsonb_build_object(
    'id', present.id, 'created', false, 'participation', participation_text(the_crm, present.id), 'entered', jsonb_build_object(new_state, 1), 'seats', seats);
END
$function$;

CREATE OR REPLACE FUNCTION public.claim_place(request jsonb, named timeslot, source uuid)
 RETURNS TABLE(rejection jsonb, reclaimed bigint, target appointment, slot_start timestamp with time zone, slot_end timestamp with time zone, opening timeslot)
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  the_resource text := named.resource_reference;
  minutes integer := coalesce((request ->> 'minutes')::integer, named.raster::integer);
  in_timeslot boolean := named.id IS NOT NULL;
  offering uuid;
  present timestamptz;
  bounds record;
  other appointment%ROWTYPE;
  overlapping uuid[];
  locked uuid[];
  leaves_empty boolean := false;
  is_taken boolean := false;
  is_full boolean := false;
  is_hidden boolean;
  is_blocked boolean;
BEGIN
  reclaimed := 0;
  IF in_timeslot THEN
    slot_start := request ->> 'startsAt';
    slot_end := slot_start + make_interval(mins => minutes);
    overlapping := ARRAY(
      SELECT id FROM near_timeslots(the_crm, the_provider, the_resource, slot_start, slot_end, named.buffer_before, named.buffer_after));
    locked := ARRAY(SELECT id FROM timeslot WHERE crm_id = the_crm AND id = ANY (overlapping) ORDER BY id FOR NO KEY UPDATE);
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND id = named.id;
    IF NOT FOUND THEN rejection := missing_timeslot_answer(named.reference); RETURN NEXT; RETURN; END IF;
    IF minutes <> coalesce((request ->> 'minutes')::integer, opening.raster::integer)
       OR (opening.buffer_before, opening.buffer_after) <> (named.buffer_before, named.buffer_after)
       OR EXISTS (
         SELECT FROM near_timeslots(the_crm, the_provider, the_resource, slot_start, slot_end, opening.buffer_before, opening.buffer_after)
          WHERE id <> ALL (locked)) THEN
      rejection := retry_answer('stale'); RETURN NEXT; RETURN;
    END IF;
    IF NOT is_step(opening, slot_start, slot_end) THEN rejection := no_step_answer(opening, slot_start, minutes); RETURN NEXT; RETURN; END IF;
    -- It was hidden, or elsewhere, when the locks were taken.
    IF opening.id <> ALL (locked) THEN rejection := retry_answer('stale'); RETURN NEXT; RETURN; END IF;
    overlapping := ARRAY(
      SELECT id FROM near_appointments(the_crm, the_provider, the_resource, slot_start, slot_end, opening.buffer_before, opening.buffer_after));
  ELSE
    SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'appointmentReference';
    overlapping := ARRAY[target.id];
    IF target.when_empty IS NOT NULL THEN
      offering := (SELECT id FROM offering_timeslots(target) AS id LIMIT 1);
      PERFORM FROM timeslot WHERE crm_id = the_crm AND id = offering FOR KEY SHARE;
    END IF;
  END IF;
  locked := ARRAY(SELECT id FROM appointment WHERE crm_id = the_crm AND id = ANY (overlapping || source) ORDER BY id FOR NO KEY UPDATE);
  reclaimed := (SELECT coalesce(sum(free_expired_seats(the_crm, id, request -> 'origin')), 0) FROM unnest(locked) AS id);
  IF NOT in_timeslot THEN
    SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND id = ANY (overlapping);
    IF NOT FOUND THEN rejection := error_answer('appointment.not_found'); RETURN NEXT; RETURN; END IF;
    slot_start := target.starts_at;
    slot_end := target.ends_at;
  END IF;

  -- The time is read behind the locks: an attempt may have waited for them.
  SELECT * INTO bounds FROM booking_bounds(the_crm, the_provider, scheduling_now(the_crm), (request ->> 'ignoreNotice')::boolean);
  rejection := CASE WHEN slot_start < bounds.earliest THEN unavailable_answer('too_soon') WHEN slot_start > bounds.latest THEN unavailable_answer('too_late') END;
  IF rejection IS NOT NULL THEN RETURN NEXT; RETURN; END IF;

  is_blocked := EXISTS (
    SELECT FROM overlapping_blocks(the_crm, the_provider, coalesce(target.resource_reference, the_resource), slot_start, slot_end));
  IF in_timeslot THEN
    IF is_blocked THEN rejection := unavailable_answer('blocked'); RETURN NEXT; RETURN; END IF;
    leaves_empty := ends_without(the_crm, source, (request ->> 'participationId')::uuid);
    FOR other IN
      SELECT * FROM near_appointments(the_crm, the_provider, the_resource, slot_start, slot_end, opening.buffer_before, opening.buffer_after) ORDER BY id
    LOOP
      CONTINUE WHEN leaves_empty AND other.id = source;
      IF other.id <> ALL (locked) THEN rejection := retry_answer('stale'); RETURN NEXT; RETURN; END IF;
      is_taken := true;
      IF other.starts_at = slot_start AND other.ends_at = slot_end AND other.product_reference = request ->> 'productReference' AND other.accept_bookings THEN
        is_full := true;
        IF target.id IS NULL AND other.taken < other.capacity THEN target := other; END IF;
      END IF;
    END LOOP;
    rejection := CASE WHEN target.id IS NULL AND is_taken THEN unavailable_answer(CASE WHEN is_full THEN 'full' ELSE 'taken' END) END;
  ELSE
    is_hidden := target.when_empty IS NOT NULL AND NOT EXISTS (SELECT FROM offering_timeslots(target));
    rejection := CASE
      WHEN target.state <> 'ACTIVE' THEN closed_answer('The appointment is cancelled. Book another slot.')
      WHEN is_hidden THEN closed_answer('The appointment was made by a booking, and lies in no bookable timeslot any more.')
      WHEN NOT target.accept_bookings THEN unavailable_answer('private')
      WHEN is_blocked THEN unavailable_answer('blocked')
      WHEN target.taken >= target.capacity THEN unavailable_answer('full') END;
    IF rejection IS NULL AND target.when_empty IS NOT NULL AND NOT EXISTS (SELECT FROM offering_timeslots(target) AS id WHERE id = offering) THEN
      rejection := retry_answer('stale'); RETURN NEXT; RETURN;
    END IF;
  END IF;
  RETURN NEXT;
END
$function$;

CREATE OR REPLACE FUNCTION public.closed_answer(cause text)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT error_answer('slot.unavailable', jsonb_build_object('reason', 'closed', 'text', cause))
$function$;

CREATE OR REPLACE FUNCTION public.confirm_attendance(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  locked record;
  rights record;
  event_number integer;
  confirmed participation%ROWTYPE;
  answer jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  answer := locked.rejection;
  IF answer IS NULL THEN
    SELECT * INTO rights FROM own_booking_rights(locked.present, locked.target, scheduling_now(the_crm));
    answer := jsonb_build_object('id', (locked.present).id, 'created', false);
    IF rights.is_confirmable AND has_other_start(locked.target, request) THEN
      answer := error_answer('link.changed');
    ELSIF rights.is_confirmable THEN
      UPDATE appointment SET event_count = event_count + 1 WHERE crm_id = the_crm AND id = (locked.target).id RETURNING event_count INTO event_number;
      UPDATE participation SET version = version + 1, attendance_confirmed_at = scheduling_now(the_crm), arranged_at = coalesce(arranged_at, changed_at)
       WHERE crm_id = the_crm AND id = (locked.present).id
      RETURNING * INTO confirmed;
      PERFORM append_participation_changed(confirmed, (locked.target).provider_id, 'UPDATED', confirmed.state, request -> 'origin', NULL, event_number);
    ELSIF (locked.present).state <> 'BOOKED' THEN
      answer := link_refusal(NULL);
    ELSIF (locked.present).attendance_confirmed_at IS NULL THEN
      answer := link_refusal((locked.target).starts_at);
    END IF;
  END IF;
  RETURN answer || jsonb_build_object('reclaimed', locked.reclaimed);
END
$function$;

CREATE OR REPLACE FUNCTION public.confirm_hold(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  locked record;
  answer jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  answer := coalesce(locked.rejection, confirm_locked_hold(request, locked.target, locked.present)) || jsonb_build_object('reclaimed', locked.reclaimed);
  RETURN CASE WHEN answer ? 'id' THEN answer || booking_content(request ->> 'crmId', (request ->> 'participationId')::uuid, NULL) ELSE answer END;
END
$function$;

CREATE OR REPLACE FUNCTION public.confirm_locked_hold(request jsonb, target appointment, present participation)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_reference text := request ->> 'customerReference';
  is_new boolean := present.state = 'RESERVED' AND present.customer_id IS NULL;
  somebody_else CONSTANT jsonb := error_answer('participation.move_not_allowed', '{"text": "The booking is that of somebody else."}');
  person customer%ROWTYPE;
BEGIN
  IF present.state NOT IN ('RESERVED', 'BOOKED') THEN
    RETURN error_answer('participation.move_not_allowed', jsonb_build_object('text', format('A participation that is %s is not a hold.', present.state)));
  END IF;
  IF the_reference IS NOT NULL AND NOT is_new THEN
    SELECT * INTO person FROM known_customer(request ->> 'crmId', target.provider_id, the_reference);
    -- A customer who does not exist yet is not the one of the booking.
    IF person.id IS NULL THEN RETURN retry_answer('customer') || somebody_else; END IF;
    IF person.id IS DISTINCT FROM present.customer_id THEN RETURN somebody_else; END IF;
  END IF;
  RETURN change_state(request, target, present, CASE WHEN is_new THEN the_reference END);
END
$function$;

CREATE OR REPLACE FUNCTION public.conflicts_of(conflicting text[])
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT jsonb_build_object('appointmentReferences', coalesce(to_jsonb(conflicting[:500]), '[]'), 'total', coalesce(cardinality(conflicting), 0))
$function$;

CREATE OR REPLACE FUNCTION public.conflicts_with_block(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  block resource_block%ROWTYPE;
  locked uuid[];
  present timestamptz := scheduling_now(the_crm);
BEGIN
  SELECT * INTO block FROM resource_block WHERE crm_id = the_crm AND id = (request ->> 'id')::uuid;
  IF NOT FOUND THEN RETURN NULL; END IF;
  locked := ARRAY(SELECT id FROM overlapping_timeslots(the_crm, block.provider_id, block.resource_reference, block.starts_at, block.ends_at));
  PERFORM FROM timeslot WHERE crm_id = the_crm AND id = ANY (locked) AND ends_at > present ORDER BY id FOR SHARE;
  locked := ARRAY(SELECT id FROM overlapping_appointments(the_crm, block.provider_id, block.resource_reference, block.starts_at, block.ends_at));
  PERFORM FROM appointment WHERE crm_id = the_crm AND id = ANY (locked) AND ends_at > present ORDER BY id FOR SHARE;

  RETURN conflicts_of(ARRAY(
    SELECT reference
      FROM overlapping_appointments(the_crm, block.provider_id, block.resource_reference, block.starts_at, block.ends_at) AS appointment
     WHERE ends_at > present AND (when_empty IS NULL OR NOT (SELECT abandoned FROM occupancy(appointment, present)))
     ORDER BY starts_at, id));
END
$function$;

CREATE OR REPLACE FUNCTION public.count_future_bookings(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN to_jsonb(future_bookings(request ->> 'crmId', (request ->> 'providerId')::uuid, request ->> 'email'));
END
$function$;

CREATE OR REPLACE FUNCTION public.create_appointment(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  the_reference text := request ->> 'reference';
  the_digest bytea := decode(request ->> 'contentDigest', 'hex');
  embedded jsonb := request -> 'participations';
  embedded_count integer := jsonb_array_length(embedded);
  entered jsonb;
  seats bigint := 0;
  rejection jsonb;
  made appointment%ROWTYPE;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  IF embedded_count > 0 THEN
    rejection := reference_rejection(the_crm, embedded);
    IF rejection IS NOT NULL AND NOT EXISTS (SELECT FROM appointment WHERE crm_id = the_crm AND reference = the_reference) THEN RETURN rejection; END IF;
    SELECT jsonb_object_agg(state, number), coalesce(sum(number) FILTER (WHERE takes_seat(state)), 0) INTO entered, seats
      FROM (SELECT each ->> 'state' AS state, count(*) AS number FROM jsonb_array_elements(embedded) AS each GROUP BY state) AS counted;
  END IF;

  INSERT INTO appointment (
    crm_id, provider_id, reference, resource_reference, product_reference, contact_reference, description, notes, address, price_value, price_currency,
    starts_at, ends_at, capacity, taken, accept_bookings, content_digest, event_count, metadata)
  VALUES (
    the_crm, the_provider, the_reference, request ->> 'resourceReference', request ->> 'productReference', request ->> 'contactReference',
    request ->> 'description', request ->> 'notes', (request ->> 'address')::jsonb, (request ->> 'priceValue')::numeric, request ->> 'priceCurrency',
    (request ->> 'startsAt')::timestamptz, (request ->> 'endsAt')::timestamptz, (request ->> 'capacity')::bigint, seats,
    (request ->> 'acceptBookings')::boolean, the_digest, 1 + embedded_count,
    nullif(request -> 'metadata', 'null'))
  ON CONFLICT ON CONSTRAINT appointment_reference_key DO NOTHING
  RETURNING * INTO made;
  IF NOT FOUND THEN
    SELECT * INTO made FROM appointment WHERE crm_id = the_crm AND reference = the_reference;
    IF NOT FOUND THEN RETURN retry_answer('stale'); END IF;
    IF made.provider_id <> the_provider OR made.content_digest <> the_digest THEN RETURN error_answer('appointment.reference_taken'); END IF;
    RETURN appointment_answer(made, request);
  END IF;
  PERFORM append_appointment_changed(made, 'CREATED', request -> 'origin');
  IF embedded_count > 0 THEN PERFORM embed_participations(made, embedded, request -> 'origin'); END IF;
  RETURN appointment_answer(made, request) || jsonb_build_object('created', true, 'seats', seats, 'entered', entered);
END
$function$;

CREATE OR REPLACE FUNCTION public.create_participation(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  locked record;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_appointment(request, request ->> 'appointmentReference');
  RETURN join_appointment(request, locked.target) || jsonb_build_object('reclaimed', locked.reclaimed);
END
$function$;

CREATE OR REPLACE FUNCTION public.create_series(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
  texts jsonb;
  number integer;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  WITH made AS (
    INSERT INTO appointment (
      crm_id, provider_id, series_id, id, reference, resource_reference, product_reference, contact_reference, description, notes, address, price_value, price_currency,
      starts_at, ends_at, capacity, taken, accept_bookings, content_digest, event_count, metadata)
    SELECT the_crm, (request ->> 'providerId')::uuid, request ->> 'seriesId', id, reference, request ->> 'resourceReference', request ->> 'productReference',
        request ->> 'contactReference', request ->> 'description', request ->> 'notes', (request ->> 'address')::jsonb, (request ->> 'priceValue')::numeric,
        request ->> 'priceCurrency', "startsAt", "endsAt", (request ->> 'capacity')::bigint, 0, (request ->> 'acceptBookings')::boolean,
        decode(request ->> 'contentDigest', 'hex'), 1, nullif(request -> 'metadata', 'null')
      FROM jsonb_to_recordset(request -> 'appointments') AS each(id uuid, reference text, "startsAt" timestamptz, "endsAt" timestamptz)
    RETURNING appointment)
  SELECT count(append_appointment_changed(appointment, 'CREATED', request -> 'origin')), jsonb_agg(content ORDER BY (appointment).starts_at)
    INTO number, texts
    FROM made, appointment_json(appointment, present, (request ->> 'archiveAfterDays')::integer);
  RETURN jsonb_build_object('id', request -> 'seriesId', 'created', true, 'appointments', texts);
END
$function$;

CREATE OR REPLACE FUNCTION public.customer_to_book_for(request jsonb, the_provider uuid, the_reference text)
 RETURNS customer
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  person customer%ROWTYPE;
BEGIN
  SELECT * INTO person FROM customer
   WHERE crm_id = the_crm AND provider_id = the_provider AND reference = the_reference AND reference_known
   ORDER BY refreshed_at DESC LIMIT 1 FOR KEY SHARE;
  IF NOT FOUND AND request ? 'prepared' THEN person := add_prepared_customer(the_crm, the_provider, the_reference, request -> 'prepared'); END IF;
  RETURN person;
END
$function$;

CREATE OR REPLACE FUNCTION public.day_appointments(the_crm text, the_provider uuid, day_start timestamp with time zone, day_end timestamp with time zone)
 RETURNS SETOF appointment
 LANGUAGE sql
 STABLE
AS $function$
  SELECT *
    FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND starts_at >= day_start AND starts_at < day_end AND state = 'ACTIVE'
     AND (when_empty IS NULL OR (
       SELECT true FROM participation
        WHERE participation.crm_id = the_crm AND participation.appointment_id = appointment.id AND participation.state IN ('BOOKED', 'REQUESTED')
        LIMIT 1))
$function$;

CREATE OR REPLACE FUNCTION public.decide_request(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  present_time timestamptz := scheduling_now(the_crm);
  locked record;
  decided_request jsonb;
  answer jsonb;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  answer := locked.rejection;
  IF answer IS NULL THEN
    answer := CASE
      WHEN (locked.present).state <> 'REQUESTED' THEN error_answer('link.not_allowed')
      WHEN (locked.target).starts_at <= present_time THEN error_answer('link.too_late')
      WHEN shown_of(locked.target) <> request ->> 'shown' THEN error_answer('link.changed') END;
  END IF;
  IF answer IS NULL THEN
    decided_request := request || jsonb_build_object(
      'ignoreCapacity', false, 'sendMails', true, 'origin', (request -> 'origin') || '{"decided": true}');
    answer := change_state(decided_request, locked.target, locked.present, NULL);
    IF answer ? 'entered' THEN
      INSERT INTO participation_decision (crm_id, participation_id, confirmed, recipient_id, decided_at)
      VALUES (the_crm, (locked.present).id, request ->> 'state' = 'BOOKED', (request ->> 'recipientId')::uuid, present_time);
    END IF;
  END IF;
  RETURN answer || jsonb_build_object('reclaimed', locked.reclaimed);
END
$function$;

CREATE OR REPLACE FUNCTION public.delete_appointments(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  ids uuid[];
  target appointment%ROWTYPE;
  first_id uuid;
  freed bigint := 0;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  IF request ? 'seriesId' THEN
    ids := ARRAY(SELECT id FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND series_id = request ->> 'seriesId');
  ELSE
    ids := ARRAY(SELECT id FROM appointment WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'reference');
  END IF;
  -- In a fixed order, so that two transactions cannot deadlock.
  FOR target IN SELECT * FROM appointment WHERE crm_id = the_crm AND id = ANY (ids) ORDER BY id FOR UPDATE LOOP
    first_id := coalesce(first_id, target.id);
    freed := freed + target.taken;
    WITH removed AS (DELETE FROM participation WHERE crm_id = the_crm AND appointment_id = target.id RETURNING old AS before)
    SELECT target.event_count + count(append_participation_removed(before, target.provider_id, request -> 'origin', target.event_count + ordinal))
      INTO target.event_count
      FROM (SELECT *, row_number() OVER (ORDER BY (before).id)::integer AS ordinal FROM removed) AS removals;
    DELETE FROM appointment WHERE crm_id = the_crm AND id = target.id;
    PERFORM append_appointment_changed(target, 'DELETED', request -> 'origin');
  END LOOP;
  IF first_id IS NULL THEN RETURN error_answer(CASE WHEN request ? 'seriesId' THEN 'series.not_found' ELSE 'appointment.not_found' END); END IF;
  RETURN jsonb_build_object('id', first_id, 'created', false, 'seats', -freed);
END
$function$;

CREATE OR REPLACE FUNCTION public.embed_participations(target appointment, embedded jsonb, origin jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  WITH made AS (
    INSERT INTO participation (crm_id, id, appointment_id, reference, name, email, mobile, note, state, exempt, reserved_until, metadata)
    SELECT target.crm_id, id, target.id, reference, name, email, mobile, note, state, true, expiry_of(state, target.crm_id), metadata
      FROM jsonb_to_recordset(embedded) AS each(id uuid, reference text, name text, email text, mobile text, note text, state text, metadata jsonb)
     ORDER BY reference COLLATE "C"
    RETURNING participation
  )
  INSERT INTO outbox (subject, data, request_id, traceparent)
  SELECT participation_subject(false),
      participation_changed_data(participation, target.provider_id, 'CREATED', NULL, origin, NULL, 1 + row_number() OVER ()::integer),
      origin ->> 'request_id', origin ->> 'traceparent'
    FROM made;
END
$function$;

CREATE OR REPLACE FUNCTION public.end_if_empty(the_crm text, the_appointment uuid, origin jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  target appointment%ROWTYPE;
BEGIN
  SELECT * INTO target FROM appointment
   WHERE crm_id = the_crm AND id = the_appointment AND state = 'ACTIVE' AND when_empty IS NOT NULL AND taken = 0;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM FROM participation WHERE crm_id = the_crm AND appointment_id = the_appointment AND is_active(state);
  IF FOUND THEN RETURN; END IF;

  IF target.when_empty = 'REMOVED' THEN
    DELETE FROM appointment
     WHERE crm_id = the_crm AND id = the_appointment
       AND NOT EXISTS (SELECT FROM participation WHERE participation.crm_id = the_crm AND appointment_id = the_appointment);
    IF FOUND THEN
      PERFORM append_appointment_changed(target, 'DELETED', origin);
      RETURN;
    END IF;
  END IF;
  UPDATE appointment SET state = 'CANCELLED', event_count = event_count + 1 WHERE crm_id = the_crm AND id = the_appointment;
  PERFORM append_appointment_changed(target, 'CANCELLED', origin);
END
$function$;

CREATE OR REPLACE FUNCTION public.ended(appointment appointment, present timestamp with time zone)
 RETURNS TABLE(ended boolean)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT appointment.when_empty = 'REMOVED' AND appointment.state = 'ACTIVE' AND NOT EXISTS (
           SELECT FROM participation
            WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id
              AND (participation.reserved_until IS NULL OR participation.reserved_until > present))
$function$;

CREATE OR REPLACE FUNCTION public.ends_without(the_crm text, the_appointment uuid, the_participation uuid)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
  SELECT EXISTS (SELECT FROM appointment WHERE crm_id = the_crm AND id = the_appointment AND when_empty IS NOT NULL)
     AND NOT EXISTS (
       SELECT FROM participation
        WHERE crm_id = the_crm AND appointment_id = the_appointment AND id <> the_participation AND is_active(state))
$function$;

CREATE OR REPLACE FUNCTION public.epoch_ms(moment timestamp with time zone)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
  SELECT (extract(epoch FROM moment) * 1000)::bigint
$function$;

CREATE OR REPLACE FUNCTION public.error_answer(code text, details jsonb DEFAULT '{}'::jsonb)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT jsonb_build_object('error', jsonb_build_object('code', code) || details)
$function$;

CREATE OR REPLACE FUNCTION public.expiry_of(state text, the_crm text)
 RETURNS timestamp with time zone
 LANGUAGE sql
AS $function$
  SELECT CASE WHEN state = 'RESERVED' THEN scheduling_now(the_crm) + interval '180 seconds' END
$function$;

CREATE OR REPLACE FUNCTION public.first_timeslots(the_crm text, the_provider uuid, the_resource text, period_start timestamp with time zone, period_end timestamp with time zone, max_rows integer)
 RETURNS TABLE(id uuid, starts_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
  (SELECT id, starts_at FROM timeslot
    WHERE the_resource IS NULL AND crm_id = the_crm AND provider_id = the_provider
      AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE' AND default_capacity >= 1
      AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
    ORDER BY starts_at, id LIMIT max_rows)
   UNION ALL
  (SELECT id, starts_at FROM timeslot
    WHERE the_resource IS NULL AND crm_id = the_crm AND provider_id = the_provider
      AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE' AND default_capacity >= 1
      AND ends_at - starts_at > interval '24 hours'
   OFFSET 0)
   UNION ALL
  (SELECT id, starts_at FROM timeslot
    WHERE the_resource IS NOT NULL AND crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
      AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE' AND default_capacity >= 1
      AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
    ORDER BY starts_at, id LIMIT max_rows)
   UNION ALL
  (SELECT id, starts_at FROM timeslot
    WHERE the_resource IS NOT NULL AND crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
      AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE' AND default_capacity >= 1
      AND ends_at - starts_at > interval '24 hours'
   OFFSET 0)
$function$;

CREATE OR REPLACE FUNCTION public.forget_notes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      NEW.metadata := NULL;
      NEW.no_show := false;
      RETURN NEW;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.forget_verification_mails(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
BEGIN
  DELETE FROM verification_mail WHERE crm_id = request ->> 'crmId' AND address_digest = address_digest(request ->> 'email');
  RETURN '{}';
END
$function$;

CREATE OR REPLACE FUNCTION public.free_expired_seats(the_crm text, the_appointment uuid, origin jsonb)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
DECLARE
  expired participation%ROWTYPE;
  target appointment%ROWTYPE;
  freed integer := 0;
BEGIN
  -- They would have expired without the request that finds them.
  origin := origin - 'actor';
  FOR expired IN
    DELETE FROM participation
     WHERE crm_id = the_crm AND appointment_id = the_appointment AND state = 'RESERVED' AND reserved_until <= (SELECT scheduling_now(the_crm))
    RETURNING *
  LOOP
    freed := freed + 1;
    IF freed = 1 THEN SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND id = the_appointment; END IF;
    PERFORM append_participation_removed(expired, target.provider_id, origin, target.event_count + freed);
  END LOOP;
  IF freed > 0 THEN
    UPDATE appointment SET taken = taken - freed, event_count = event_count + freed WHERE crm_id = the_crm AND id = the_appointment;
    PERFORM end_if_empty(the_crm, the_appointment, origin);
  END IF;
  RETURN freed;
END
$function$;

CREATE OR REPLACE FUNCTION public.future_bookings(the_crm text, the_provider uuid, the_address text)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  the_key text := address_key(the_address);
  present timestamptz := scheduling_now(the_crm);
BEGIN
  RETURN (
    SELECT count(*)
      FROM (
        SELECT participation.appointment_id, participation.state
          FROM customer
          JOIN participation ON participation.crm_id = customer.crm_id AND participation.customer_id = customer.id
         WHERE customer.crm_id = the_crm AND customer.provider_id = the_provider AND customer.email IS NOT NULL AND address_key(customer.email) = the_key
         UNION ALL
        SELECT appointment_id, state FROM participation WHERE crm_id = the_crm AND email IS NOT NULL AND address_key(email) = the_key) AS own
      JOIN appointment ON appointment.crm_id = the_crm AND appointment.id = own.appointment_id
     WHERE own.state IN ('REQUESTED', 'BOOKED') AND appointment.provider_id = the_provider AND appointment.state = 'ACTIVE' AND appointment.starts_at > present);
END
$function$;

CREATE OR REPLACE FUNCTION public.has_mail(origin jsonb)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT coalesce((origin ->> 'hasMail')::boolean, false)
$function$;

CREATE OR REPLACE FUNCTION public.has_mail_on_creation(state text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT state IN ('REQUESTED', 'BOOKED')
$function$;

CREATE OR REPLACE FUNCTION public.has_other_start(appointment appointment, request jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN coalesce(epoch_ms(appointment.starts_at) <> (request ->> 'shownStart')::bigint, false);
END
$function$;

CREATE OR REPLACE FUNCTION public.hold_page_time(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  present timestamptz;
  held record;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('page holds ' || the_provider, 0));
  present := scheduling_now(the_crm);
  SELECT count(*) AS places, count(*) FILTER (
      WHERE appointment.starts_at >= (request ->> 'dayStart')::timestamptz AND appointment.starts_at < (request ->> 'dayEnd')::timestamptz) AS that_day
    INTO held
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
   WHERE participation.crm_id = the_crm AND participation.reserved_until > present AND participation.reference LIKE 'page-%'
     AND appointment.provider_id = the_provider;
  IF held.places >= (request ->> 'maxHolds')::integer OR held.that_day >= greatest(1, ((request ->> 'freePlaces')::integer + held.that_day) / 4) THEN
    RETURN jsonb_build_object('id', request ->> 'id', 'created', false, 'notHeld', true);
  END IF;
  RETURN book_slot(request);
END
$function$;

CREATE OR REPLACE FUNCTION public.insert_participation(request jsonb, target appointment, person customer)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  new_id uuid := request ->> 'id';
  new_state text := request ->> 'state';
  origin jsonb := request -> 'origin' || jsonb_build_object('hasMail', has_mail_on_creation(new_state) AND (request ->> 'sendMails')::boolean);
  made participation%ROWTYPE;
BEGIN
  INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, note, state, exempt, reserved_until, mail_event_id, invited, metadata)
  VALUES (
    the_crm, new_id, target.id, person.id, request ->> 'reference', request ->> 'note', new_state, coalesce((request ->> 'ignoreCapacity')::boolean, false),
    expiry_of(new_state, the_crm), new_mail_event(origin), invites(origin, new_state),
    nullif(request -> 'metadata', 'null'))
  RETURNING * INTO made;
  PERFORM add_message(made, request ->> 'message');
  PERFORM append_participation_changed(made, target.provider_id, 'CREATED', NULL, origin, NULL, target.event_count);
  RETURN jsonb_build_object(
    'id', new_id, 'created', true, 'participation', (SELECT content::text FROM participation_json(made, target.reference, person)),
    'entered', jsonb_build_object(new_state, 1), 'seats', takes_seat(new_state)::integer);
END
$function$;

CREATE OR REPLACE FUNCTION public.invites(origin jsonb, new_state text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT has_mail(origin) AND new_state = 'BOOKED'
$function$;

CREATE OR REPLACE FUNCTION public.is_active(state text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT state IN ('RESERVED', 'REQUESTED', 'BOOKED')
$function$;

CREATE OR REPLACE FUNCTION public.is_place(appointment appointment, opening timeslot, request jsonb)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
  SELECT appointment.provider_id = (request ->> 'providerId')::uuid AND CASE
    WHEN request ? 'appointmentReference' THEN appointment.reference = request ->> 'appointmentReference'
    ELSE appointment.resource_reference = opening.resource_reference AND appointment.product_reference = request ->> 'productReference'
     AND appointment.starts_at = (request ->> 'startsAt')::timestamptz
     AND appointment.ends_at = appointment.starts_at + make_interval(mins => coalesce((request ->> 'minutes')::integer, opening.raster::integer)) END
$function$;

CREATE OR REPLACE FUNCTION public.is_present_provider(request jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  PERFORM FROM provider
   WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'providerId')::uuid AND version = coalesce((request ->> 'providerVersion')::integer, version);
  RETURN FOUND;
END
$function$;

CREATE OR REPLACE FUNCTION public.is_step(timeslot timeslot, period_start timestamp with time zone, period_end timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT timeslot.state = 'BOOKABLE' AND timeslot.default_capacity >= 1
     AND period_start >= timeslot.starts_at AND period_end <= timeslot.ends_at AND period_end > period_start
     AND extract(epoch FROM period_start - timeslot.starts_at) % (timeslot.raster * 60) = 0
     AND extract(epoch FROM period_end - period_start) % (timeslot.raster * 60) = 0
$function$;

CREATE OR REPLACE FUNCTION public.is_unavailable(answer jsonb)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT answer #>> '{error,code}' IS NOT DISTINCT FROM 'slot.unavailable'
$function$;

CREATE OR REPLACE FUNCTION public.join_appointment(request jsonb, target appointment)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  new_state text := request ->> 'state';
  person customer%ROWTYPE;
  present participation%ROWTYPE;
BEGIN
  IF target.id IS NULL THEN RETURN error_answer('appointment.not_found'); END IF;
  person := customer_to_book_for(request, target.provider_id, request ->> 'customerReference');
  IF person.id IS NULL THEN RETURN retry_answer('customer'); END IF;

  SELECT * INTO present FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference';
  IF FOUND THEN
    IF present.reserved_until <= scheduling_now(the_crm) THEN RETURN retry_answer('reference'); END IF;
    IF (request ->> 'onDuplicateRaise')::boolean OR present.appointment_id <> target.id OR present.customer_id IS DISTINCT FROM person.id THEN
      RETURN error_answer('participation.reference_taken');
    END IF;
    RETURN change_state(request - 'metadata', target, present, NULL);
  END IF;

  IF is_active(new_state) AND target.state <> 'ACTIVE' THEN RETURN error_answer('appointment.cancelled'); END IF;
  IF takes_seat(new_state) AND NOT (request ->> 'ignoreCapacity')::boolean AND target.taken >= target.capacity THEN RETURN no_seat_answer(target); END IF;
  UPDATE appointment SET taken = taken + takes_seat(new_state)::integer, event_count = event_count + 1 WHERE crm_id = the_crm AND id = target.id RETURNING * INTO target;
  RETURN insert_participation(request, target, person);
END
$function$;

CREATE OR REPLACE FUNCTION public.known_customer(the_crm text, the_provider uuid, the_reference text)
 RETURNS SETOF customer
 LANGUAGE sql
 STABLE
AS $function$
  SELECT * FROM customer
   WHERE crm_id = the_crm AND provider_id = the_provider AND reference = the_reference AND reference_known
   ORDER BY refreshed_at DESC LIMIT 1
$function$;

CREATE OR REPLACE FUNCTION public.last_mailable_version(participation participation)
 RETURNS integer
 LANGUAGE sql
 STABLE
AS $function$
  SELECT coalesce(
    participation.mailable_version,
    participation.version - (participation.state = 'BOOKED' AND participation.attendance_confirmed_at IS NOT NULL)::integer)
$function$;

CREATE OR REPLACE FUNCTION public.leave_appointments(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  ids uuid[] := ARRAY(SELECT jsonb_array_elements_text(request -> 'participationIds'))::uuid[];
  leaving participation%ROWTYPE;
  target appointment%ROWTYPE;
  left_ids uuid[] := '{}';
BEGIN
  FOR leaving IN DELETE FROM participation WHERE crm_id = the_crm AND id = ANY (ids) RETURNING * LOOP
    UPDATE appointment
       SET taken = taken - takes_seat(leaving.state)::integer, event_count = event_count + 1, when_empty = CASE WHEN when_empty IS NOT NULL THEN 'CANCELLED' END
     WHERE crm_id = the_crm AND id = leaving.appointment_id
    RETURNING * INTO target;
    PERFORM append_participation_removed(leaving, target.provider_id, request -> 'origin', target.event_count);
    left_ids := left_ids || target.id;
  END LOOP;
  PERFORM end_if_empty(the_crm, id, request -> 'origin') FROM (SELECT DISTINCT unnest(left_ids) AS id) AS emptied;
  RETURN '{}';
END
$function$;

CREATE OR REPLACE FUNCTION public.link_refusal(possible_until timestamp with time zone)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT error_answer(CASE WHEN possible_until IS NULL THEN 'link.not_allowed' ELSE 'link.too_late' END)
$function$;

CREATE OR REPLACE FUNCTION public.location_json(address jsonb)
 RETURNS TABLE(content json)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT CASE jsonb_typeof(address)
      WHEN 'object' THEN (
        SELECT row_to_json(fields) FROM jsonb_to_record(address) AS fields (city text, "countryCode" text, street text, number text, zip text))
      ELSE address::json
    END
$function$;

CREATE OR REPLACE FUNCTION public.lock_appointment(request jsonb, the_reference text)
 RETURNS TABLE(target appointment, reclaimed integer)
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
BEGIN
  SELECT * INTO target FROM appointment
   WHERE crm_id = the_crm AND provider_id = (request ->> 'providerId')::uuid AND reference = the_reference FOR NO KEY UPDATE;
  reclaimed := free_expired_seats(the_crm, target.id, request -> 'origin');
  IF reclaimed > 0 THEN SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND id = target.id; END IF;
  RETURN NEXT;
END
$function$;

CREATE OR REPLACE FUNCTION public.lock_participation(request jsonb)
 RETURNS TABLE(target appointment, present participation, rejection jsonb, reclaimed integer)
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_participation uuid := request ->> 'participationId';
  the_appointment uuid;
BEGIN
  SELECT id INTO the_appointment FROM appointment
   WHERE crm_id = the_crm AND provider_id = (request ->> 'providerId')::uuid
     AND id = (SELECT appointment_id FROM participation WHERE crm_id = the_crm AND id = the_participation)
     FOR NO KEY UPDATE;
  reclaimed := free_expired_seats(the_crm, the_appointment, request -> 'origin');
  SELECT * INTO present FROM participation WHERE crm_id = the_crm AND id = the_participation FOR NO KEY UPDATE;
  rejection := CASE
    WHEN NOT FOUND THEN error_answer('participation.not_found')
    -- It has been anonymised since.
    WHEN present.reference <> request ->> 'participationReference' THEN error_answer('participation.not_found')
    -- It has been moved since.
    WHEN present.appointment_id IS DISTINCT FROM the_appointment THEN retry_answer('stale') END;
  SELECT * INTO target FROM appointment WHERE crm_id = the_crm AND id = the_appointment;
  RETURN NEXT;
END
$function$;

CREATE OR REPLACE FUNCTION public.make_days(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  hours jsonb;
  made bigint := 0;
BEGIN
  FOR hours IN SELECT jsonb_array_elements(request -> 'hours') LOOP
    PERFORM FROM resource_hours
     WHERE crm_id = the_crm AND provider_id = (hours ->> 'providerId')::uuid AND resource_reference = hours ->> 'resourceReference'
       AND revision = (hours ->> 'revision')::uuid
       FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    -- Another replica may have made the same days: its revision is another one.
    UPDATE resource_hours
       SET revision = gen_random_uuid(), made_from = (hours ->> 'madeFrom')::date, made_until = (hours ->> 'madeUntil')::date, due_at = (hours ->> 'dueAt')::timestamptz
     WHERE crm_id = the_crm AND provider_id = (hours ->> 'providerId')::uuid AND resource_reference = hours ->> 'resourceReference';
    made := made + open_windows(the_crm, (hours ->> 'providerId')::uuid, ARRAY[hours ->> 'resourceReference'], hours -> 'openings');
  END LOOP;
  RETURN to_jsonb(made);
END
$function$;

CREATE OR REPLACE FUNCTION public.missing_timeslot_answer(reference text)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
AS $function$
  SELECT CASE WHEN reference LIKE '%@hours' THEN closed_answer('The opening hours have changed, and have removed the timeslot. List the slots again.') ELSE error_answer('timeslot.not_found') END
$function$;

CREATE OR REPLACE FUNCTION public.moment_json(moment timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$function$;

CREATE OR REPLACE FUNCTION public.move_booking(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  origin jsonb := request -> 'origin' || jsonb_build_object('hasMail', (request ->> 'sendMails')::boolean);
  keeps_product boolean := request ->> 'productReference' IS NULL;
  opening timeslot%ROWTYPE;
  source appointment%ROWTYPE;
  target appointment%ROWTYPE;
  present participation%ROWTYPE;
  moved participation%ROWTYPE;
  by_person boolean := coalesce((request ->> 'byPerson')::boolean, false);
  claim record;
  seats integer;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO present FROM participation WHERE crm_id = the_crm AND reference = request ->> 'participationReference';
  SELECT * INTO source FROM appointment WHERE crm_id = the_crm AND id = present.appointment_id AND provider_id = the_provider;
  IF NOT FOUND OR present.reserved_until <= scheduling_now(the_crm) THEN RETURN error_answer('participation.not_found'); END IF;
  IF present.state NOT IN ('REQUESTED', 'BOOKED') THEN
    IF by_person THEN RETURN link_refusal(NULL); END IF;
    RETURN error_answer('participation.move_not_allowed', jsonb_build_object('text', format('A participation that is %s cannot move to another slot.', present.state)));
  END IF;
  IF request ? 'timeslotReference' THEN
    SELECT * INTO opening FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND reference = request ->> 'timeslotReference';
    IF NOT FOUND THEN RETURN missing_timeslot_answer(request ->> 'timeslotReference'); END IF;
    IF keeps_product THEN request := request || jsonb_build_object('productReference', source.product_reference); END IF;
  END IF;
  IF is_place(source, opening, request) THEN RETURN present_booking_answer(the_crm, present.id, request ->> 'timeslotReference'); END IF;

  SELECT * INTO claim FROM claim_place(request || jsonb_build_object('participationId', present.id), opening, source.id);
  -- The place may be unavailable because the participation has just moved there.
  IF claim.rejection IS NULL OR is_unavailable(claim.rejection) THEN
    SELECT * INTO present FROM participation
     WHERE crm_id = the_crm AND id = present.id AND appointment_id = source.id AND version = present.version
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN claim.rejection := retry_answer('stale'); END IF;
    -- As it is behind its lock: somebody may have changed it since.
    SELECT * INTO source FROM appointment WHERE crm_id = the_crm AND id = source.id;
  END IF;
  IF by_person AND present.id IS NOT NULL THEN
    claim.rejection := coalesce(
      own_move_refusal(request, present, source, claim.opening, claim.target, claim.slot_end - claim.slot_start), claim.rejection);
  END IF;
  IF claim.rejection IS NOT NULL THEN RETURN claim.rejection || jsonb_build_object('reclaimed', claim.reclaimed); END IF;

  request := request || jsonb_build_object(
    'description', coalesce(request ->> 'description', CASE WHEN keeps_product THEN source.description END),
    'contactReference', coalesce(request ->> 'contactReference', source.contact_reference));
  IF request ->> 'priceValue' IS NULL THEN request := request || jsonb_build_object('priceValue', source.price_value, 'priceCurrency', source.price_currency); END IF;
  seats := takes_seat(present.state)::integer;
  UPDATE appointment SET taken = taken - seats, event_count = event_count + 1, when_empty = CASE WHEN when_empty IS NOT NULL THEN 'CANCELLED' END
   WHERE crm_id = the_crm AND id = source.id
  RETURNING * INTO source;
  target := take_place(request, claim.opening, claim.target, claim.slot_start, claim.slot_end, seats);
  -- From now on the public rules apply to it.
  UPDATE participation
     SET appointment_id = target.id, version = version + 1, exempt = false, mail_event_id = coalesce(new_mail_event(origin), mail_event_id),
         invited = invited OR invites(origin, state), attendance_confirmed_at = NULL, no_show = false, mailable_version = NULL, arranged_at = NULL,
         moves_by_person = moves_by_person + by_person::integer,
         untold_version = CASE WHEN has_mail(origin) THEN untold_version ELSE version + 1 END
   WHERE crm_id = the_crm AND id = present.id
  RETURNING * INTO moved;
  PERFORM add_message(moved, request ->> 'message');
  IF has_mail(origin) THEN
    INSERT INTO participation_previous (crm_id, participation_id, version, starts_at, ends_at, description, address)
    VALUES (the_crm, moved.id, moved.version, source.starts_at, source.ends_at, source.description, source.address);
  END IF;
  PERFORM append_participation_changed(moved, the_provider, 'MOVED', moved.state, origin, present.mail_event_id, target.event_count, source.id, source.event_count);
  PERFORM end_if_empty(the_crm, source.id, origin);
  RETURN jsonb_build_object('id', present.id, 'created', false, 'reclaimed', claim.reclaimed, 'entered', '{"MOVED": 1}'::jsonb) || booking_content(the_crm, present.id, request ->> 'timeslotReference');
END
$function$;

CREATE OR REPLACE FUNCTION public.near_appointments(the_crm text, the_provider uuid, the_resource text, period_start timestamp with time zone, period_end timestamp with time zone, before integer, after integer)
 RETURNS SETOF appointment
 LANGUAGE sql
 STABLE
AS $function$
  SELECT * FROM overlapping_appointments(
    the_crm, the_provider, the_resource, period_start - make_interval(mins => before), period_end + make_interval(mins => after))
   UNION ALL
  SELECT * FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND state = 'ACTIVE'
     AND (buffer_before > 0 OR buffer_after > 0)
     AND starts_at - make_interval(mins => buffer_before) < period_end AND ends_at + make_interval(mins => buffer_after) > period_start
     AND NOT (starts_at < period_end + make_interval(mins => after) AND ends_at > period_start - make_interval(mins => before))
     AND starts_at > period_start - interval '48 hours' AND starts_at < period_end + interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND state = 'ACTIVE'
     AND (buffer_before > 0 OR buffer_after > 0)
     AND starts_at - make_interval(mins => buffer_before) < period_end AND ends_at + make_interval(mins => buffer_after) > period_start
     AND NOT (starts_at < period_end + make_interval(mins => after) AND ends_at > period_start - make_interval(mins => before))
     AND ends_at > period_start - interval '24 hours' AND ends_at - starts_at > interval '24 hours'
$function$;

CREATE OR REPLACE FUNCTION public.near_timeslots(the_crm text, the_provider uuid, the_resource text, period_start timestamp with time zone, period_end timestamp with time zone, before integer, after integer)
 RETURNS SETOF timeslot
 LANGUAGE sql
 STABLE
AS $function$
  SELECT * FROM overlapping_timeslots(
    the_crm, the_provider, the_resource, period_start - make_interval(mins => before), period_end + make_interval(mins => after))
   UNION ALL
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND state = 'BOOKABLE'
     AND (buffer_before > 0 OR buffer_after > 0)
     AND starts_at - make_interval(mins => buffer_before) < period_end AND ends_at + make_interval(mins => buffer_after) > period_start
     AND NOT (starts_at < period_end + make_interval(mins => after) AND ends_at > period_start - make_interval(mins => before))
     AND starts_at > period_start - interval '48 hours' AND starts_at < period_end + interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND state = 'BOOKABLE'
     AND (buffer_before > 0 OR buffer_after > 0)
     AND starts_at - make_interval(mins => buffer_before) < period_end AND ends_at + make_interval(mins => buffer_after) > period_start
     AND NOT (starts_at < period_end + make_interval(mins => after) AND ends_at > period_start - make_interval(mins => before))
     AND ends_at > period_start - interval '24 hours' AND ends_at - starts_at > interval '24 hours'
$function$;

CREATE OR REPLACE FUNCTION public.new_mail_event(origin jsonb)
 RETURNS uuid
 LANGUAGE sql
AS $function$
  SELECT uuidv7() WHERE has_mail(origin)
$function$;

CREATE OR REPLACE FUNCTION public.next_expirations(max_rows integer)
 RETURNS TABLE(crm_id text, appointment_id uuid, remaining interval)
 LANGUAGE sql
 STABLE
AS $function$
  (SELECT crm_id, appointment_id, reserved_until - scheduling_now()
     FROM participation
    WHERE state = 'RESERVED' AND reserved_until IS NOT NULL AND NOT EXISTS (SELECT FROM sandbox_clock AS clock WHERE clock.crm_id = participation.crm_id)
    ORDER BY reserved_until LIMIT max_rows)
  UNION ALL
  SELECT clock.crm_id, due.appointment_id, due.reserved_until - scheduling_now(clock.crm_id)
    FROM sandbox_clock AS clock
   CROSS JOIN LATERAL (
     SELECT appointment_id, reserved_until FROM participation
      WHERE participation.crm_id = clock.crm_id AND state = 'RESERVED' AND reserved_until IS NOT NULL
      ORDER BY reserved_until LIMIT max_rows) AS due
$function$;

CREATE OR REPLACE FUNCTION public.no_seat_answer(appointment appointment)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT error_answer('participation.capacity_exhausted', CASE WHEN appointment.capacity = 0 THEN
    '{"text": "The appointment has a capacity of 0: it has no seats."}' ELSE '{}' END::jsonb)
$function$;

CREATE OR REPLACE FUNCTION public.no_step_answer(timeslot timeslot, slot_start timestamp with time zone, minutes integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  steps text := format('The timeslot has steps of %s minutes, from %s to %s', timeslot.raster, moment_json(timeslot.starts_at), moment_json(timeslot.ends_at));
  last_step bigint := floor((extract(epoch FROM timeslot.ends_at - timeslot.starts_at) / 60 - minutes) / timeslot.raster);
  before_start bigint := ceil(extract(epoch FROM slot_start - timeslot.starts_at) / 60 / timeslot.raster) - 1;
  starts text;
BEGIN
  IF timeslot.state <> 'BOOKABLE' THEN RETURN closed_answer('The timeslot is not bookable: its state is not BOOKABLE.'); END IF;
  IF timeslot.default_capacity < 1 THEN RETURN closed_answer('The timeslot is not bookable: its defaultCapacity is 0.'); END IF;
  IF minutes % timeslot.raster <> 0 OR last_step < 0 THEN
    RETURN error_answer('slot.unavailable', jsonb_build_object('reason', 'off_raster', 'text', steps || ': the duration must be a multiple of them, and fit in.'));
  END IF;
  SELECT string_agg(DISTINCT moment_json(timeslot.starts_at + make_interval(mins => (step * timeslot.raster)::integer)), ' or ')
    INTO starts
    FROM unnest(ARRAY[least(before_start, last_step), greatest(before_start + 1, 0)]) AS step
   WHERE step BETWEEN 0 AND last_step;
  RETURN error_answer('slot.unavailable', jsonb_build_object(
    'reason', 'off_raster', 'text', format('%s: the nearest starts of a slot of %s minutes are %s. List the slots to see what is free.', steps, minutes, starts)));
END
$function$;

CREATE OR REPLACE FUNCTION public.note_error(request jsonb, target appointment, present participation, new_state text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  marks boolean := coalesce((request ->> 'noShow')::boolean, false);
BEGIN
  RETURN CASE
    WHEN (marks OR jsonb_typeof(request -> 'metadata') = 'object') AND present.reference = 'anonymous-' || present.id THEN error_answer('participation.anonymous')
    WHEN marks AND new_state <> 'BOOKED' THEN error_answer('participation.not_booked', jsonb_build_object('text', format(
      'Only a participation that is BOOKED can be marked as a no-show; this one is %s.', new_state)))
    WHEN marks AND target.starts_at > scheduling_now(target.crm_id) THEN error_answer('participation.not_started', jsonb_build_object('text', format(
      'The appointment starts at %s: a no-show can be marked from then on.', moment_json(target.starts_at)))) END;
END
$function$;

CREATE OR REPLACE FUNCTION public.note_invited(the_crm text, the_invitation uuid, the_customer uuid, the_participation uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO invitation_booking (crm_id, participation_id, invitation_id)
  SELECT crm_id, id, the_invitation FROM participation WHERE crm_id = the_crm AND id = the_participation AND customer_id = the_customer;
  IF NOT FOUND THEN RAISE EXCEPTION 'the customer of the invitation has another reference by now' USING ERRCODE = 'serialization_failure'; END IF;
END
$function$;

CREATE OR REPLACE FUNCTION public.note_participation(request jsonb, target appointment, present participation, new_metadata jsonb, new_no_show boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  event_number integer;
  changed participation%ROWTYPE;
BEGIN
  IF (new_metadata, new_no_show) IS DISTINCT FROM (present.metadata, present.no_show) THEN
    UPDATE appointment SET event_count = event_count + 1 WHERE crm_id = target.crm_id AND id = target.id RETURNING event_count INTO event_number;
    UPDATE participation
       SET metadata = new_metadata, no_show = new_no_show, version = version + 1, mailable_version = last_mailable_version(present),
           arranged_at = coalesce(arranged_at, changed_at)
     WHERE crm_id = present.crm_id AND id = present.id
    RETURNING * INTO changed;
    PERFORM append_participation_changed(changed, target.provider_id, 'UPDATED', changed.state, request -> 'origin', NULL, event_number);
  END IF;
  RETURN jsonb_build_object('id', present.id, 'created', false, 'participation', participation_text(present.crm_id, present.id));
END
$function$;

CREATE OR REPLACE FUNCTION public.occupancy(appointment appointment, present timestamp with time zone)
 RETURNS TABLE(taken bigint, abandoned boolean)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT appointment.taken - expired.seats,
         appointment.when_empty IS NOT NULL AND appointment.taken = expired.seats AND NOT EXISTS (
           SELECT FROM participation
            WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id AND participation.state = 'REQUESTED')
    FROM (
      SELECT count(*) AS seats FROM participation
       WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id AND participation.reserved_until <= present) AS expired
$function$;

CREATE OR REPLACE FUNCTION public.occupied_key(resource_reference text, buffer_before integer, buffer_after integer)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT CASE WHEN buffer_before = 0 AND buffer_after = 0 THEN resource_reference ELSE concat(resource_reference, E'\n', buffer_before, E'\n', buffer_after) END
$function$;

CREATE OR REPLACE FUNCTION public.offering_timeslots(appointment appointment)
 RETURNS SETOF uuid
 LANGUAGE sql
 STABLE
AS $function$
  SELECT id
    FROM overlapping_timeslots(appointment.crm_id, appointment.provider_id, appointment.resource_reference, appointment.starts_at, appointment.ends_at)
   WHERE default_capacity >= 1 AND starts_at <= appointment.starts_at AND ends_at >= appointment.ends_at
$function$;

CREATE OR REPLACE FUNCTION public.open_windows(the_crm text, the_provider uuid, resources text[], openings jsonb)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
DECLARE
  hidden uuid[];
  made bigint;
BEGIN
  hidden := ARRAY(
    SELECT id FROM timeslot
     WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources) AND from_hours = 'HIDDEN'
       AND content_digest IN (SELECT decode(opening ->> 'digest', 'hex') FROM jsonb_array_elements(openings) AS opening));
  PERFORM FROM timeslot WHERE crm_id = the_crm AND id = ANY (hidden) ORDER BY id FOR UPDATE;
  -- The CRM may have changed one meanwhile.
  UPDATE timeslot SET state = 'BOOKABLE', from_hours = 'MADE' WHERE crm_id = the_crm AND id = ANY (hidden) AND from_hours = 'HIDDEN';

  INSERT INTO timeslot (
    crm_id, provider_id, reference, resource_reference, starts_at, ends_at, raster, default_capacity, default_accept_bookings, address, buffer_before, buffer_after, state,
    content_digest, from_hours)
  SELECT the_crm, the_provider, uuidv7()::text || '@hours', resource, "startsAt", "endsAt", raster, "defaultCapacity", "defaultAcceptBookings", address,
         -- Until the end of a rollout, another replica may know no buffers.
         coalesce("bufferBefore", 0), coalesce("bufferAfter", 0), 'BOOKABLE', decode(digest, 'hex'), 'MADE'
    FROM unnest(resources) AS resource
   CROSS JOIN jsonb_to_recordset(openings) AS opening (
           "startsAt" timestamptz, "endsAt" timestamptz, raster bigint, "defaultCapacity" bigint, "defaultAcceptBookings" boolean, address jsonb, "bufferBefore" integer,
           "bufferAfter" integer, digest text)
  ON CONFLICT (crm_id, provider_id, resource_reference, content_digest) WHERE from_hours IS NOT NULL DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END
$function$;

CREATE OR REPLACE FUNCTION public.overlapping_appointments(the_crm text, the_provider uuid, the_resource text, period_start timestamp with time zone, period_end timestamp with time zone)
 RETURNS SETOF appointment
 LANGUAGE sql
 STABLE
AS $function$
  SELECT * FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start AND state = 'ACTIVE'
     AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM appointment
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start AND state = 'ACTIVE'
     AND ends_at - starts_at > interval '24 hours'
$function$;

CREATE OR REPLACE FUNCTION public.overlapping_blocks(the_crm text, the_provider uuid, the_resource text, period_start timestamp with time zone, period_end timestamp with time zone)
 RETURNS SETOF resource_block
 LANGUAGE sql
 STABLE
AS $function$
  SELECT * FROM resource_block
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start
     AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM resource_block
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start
     AND ends_at - starts_at > interval '24 hours'
$function$;

CREATE OR REPLACE FUNCTION public.overlapping_timeslots(the_crm text, the_provider uuid, the_resource text, period_start timestamp with time zone, period_end timestamp with time zone)
 RETURNS SETOF timeslot
 LANGUAGE sql
 STABLE
AS $function$
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE'
     AND starts_at > period_start - interval '24 hours' AND ends_at - starts_at <= interval '24 hours'
   UNION ALL
  SELECT * FROM timeslot
   WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource
     AND starts_at < period_end AND ends_at > period_start AND state = 'BOOKABLE'
     AND ends_at - starts_at > interval '24 hours'
$function$;

CREATE OR REPLACE FUNCTION public.own_booking_rights(participation participation, appointment appointment, present timestamp with time zone)
 RETURNS TABLE(cancellable_until timestamp with time zone, movable_until timestamp with time zone, is_cancellable boolean, is_movable boolean, is_confirmable boolean)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT until.cancel, until.move, coalesce(present < until.cancel, false), coalesce(present < until.move, false),
         participation.state = 'BOOKED' AND present < appointment.starts_at AND participation.attendance_confirmed_at IS NULL
    FROM (VALUES (1)) AS one
    LEFT JOIN booking_rules ON booking_rules.crm_id = appointment.crm_id AND booking_rules.provider_id = appointment.provider_id
   CROSS JOIN LATERAL (SELECT appointment.starts_at - make_interval(mins => coalesce(change_notice, 0)) AS notice) AS rule
   CROSS JOIN LATERAL (
     SELECT CASE participation.state WHEN 'BOOKED' THEN notice WHEN 'REQUESTED' THEN appointment.starts_at END AS cancel,
            CASE WHEN participation.moves_by_person >= 5 THEN NULL
              WHEN participation.state = 'REQUESTED' OR participation.state = 'BOOKED' AND coalesce(confirmation, 'BOOKED') = 'BOOKED' THEN notice END AS move) AS until
$function$;

CREATE OR REPLACE FUNCTION public.own_move_refusal(request jsonb, present participation, source appointment, opening timeslot, target appointment, duration interval)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  rights record;
BEGIN
  SELECT * INTO rights FROM own_booking_rights(present, source, scheduling_now(source.crm_id));
  RETURN CASE
    WHEN NOT rights.is_movable THEN link_refusal(rights.movable_until)
    WHEN duration <> source.ends_at - source.starts_at
      OR target.id IS NOT NULL
         AND (target.product_reference, target.price_value, target.price_currency)
             IS DISTINCT FROM (source.product_reference, source.price_value, source.price_currency)
      OR NOT request -> 'resources' ? coalesce(target.resource_reference, opening.resource_reference)
      OR has_other_start(target, request) THEN unavailable_answer('closed') END;
END
$function$;

CREATE OR REPLACE FUNCTION public.page_bookings_of_day(the_crm text, the_provider uuid, the_address text)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  since CONSTANT timestamptz := clock_timestamp() - interval '24 hours';
BEGIN
  RETURN (
    SELECT count(*)
      FROM customer
      JOIN participation ON participation.crm_id = customer.crm_id AND participation.customer_id = customer.id
     WHERE customer.crm_id = the_crm AND customer.provider_id = the_provider AND customer.email IS NOT NULL
       AND address_key(customer.email) = address_key(the_address)
       AND participation.reference LIKE 'page-%' AND uuid_extract_timestamp(participation.id) > since);
END
$function$;

CREATE OR REPLACE FUNCTION public.participation_changed_data(change participation, provider uuid, cause text, from_state text, origin jsonb, previous_mail_event uuid, ordinal integer, source uuid DEFAULT NULL::uuid, source_ordinal integer DEFAULT NULL::integer)
 RETURNS json
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN json_build_object(
    'crmId', change.crm_id,
    'participationId', change.id,
    'version', change.version,
    'cause', 'PARTICIPATION_CHANGE_CAUSE_' || cause,
    'fromState', 'PARTICIPATION_STATE_' || from_state,
    'toState', 'PARTICIPATION_STATE_' || change.state,
    'notify', has_mail(origin),
    'appointmentId', change.appointment_id,
    'providerId', provider,
    'customerId', change.customer_id,
    'actor', coalesce(origin ->> 'actor', 'service'),
    'previousMailEventId', CASE WHEN has_mail(origin) THEN previous_mail_event END,
    'neverInvited', has_mail(origin) AND NOT change.invited,
    'exempt', change.exempt,
    'ordinal', ordinal,
    'previousAppointmentId', source,
    'previousOrdinal', source_ordinal,
    'notifyProvider', has_mail(origin) AND coalesce(
      (SELECT rules.notify_provider FROM booking_rules AS rules WHERE rules.crm_id = change.crm_id AND rules.provider_id = provider), false),
    'decided', coalesce((origin ->> 'decided')::boolean, false),
    'changeId', origin ->> 'changeId');
END
$function$;

CREATE OR REPLACE FUNCTION public.participation_json(participation participation, appointment_reference text, customer customer)
 RETURNS TABLE(content json)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT CASE WHEN num_nonnulls(participation.reserved_until, participation.attendance_confirmed_at) = 0 THEN written.content
      -- Only a reservation has a time at which it expires, and only who said so a time at which they did.
      ELSE concat(
        left(written.content::text, -1), ',"expiresAt":"' || moment_json(participation.reserved_until) || '"',
        ',"attendanceConfirmedAt":"' || moment_json(participation.attendance_confirmed_at) || '"', '}')::json END
    FROM (
      SELECT row_to_json(fields) AS content FROM (
        SELECT
          participation.reference,
          appointment_reference AS "appointmentReference",
          customer.reference AS "customerReference",
          coalesce(customer.email, participation.email) AS email,
          coalesce(customer.mobile, participation.mobile) AS mobile,
          coalesce(customer.user_name, participation.name, '') AS name,
          participation.note,
          participation.state,
          nullif(ARRAY(
            SELECT text FROM participation_message AS message
             WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id
             ORDER BY message.version), '{}') AS messages,
          participation.metadata,
          participation.no_show AS "noShow"
      ) AS fields) AS written
$function$;

CREATE OR REPLACE FUNCTION public.participation_subject(has_mail boolean)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN has_mail THEN 'scheduling.calendar.v1.participation-changed' ELSE 'scheduling.calendar.v1.participation-changed-silently' END
$function$;

CREATE OR REPLACE FUNCTION public.participation_text(the_crm text, the_participation uuid)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT content::text
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
    LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
   CROSS JOIN participation_json(participation, appointment.reference, customer)
   WHERE participation.crm_id = the_crm AND participation.id = the_participation
$function$;

CREATE OR REPLACE FUNCTION public.participation_waits()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      PERFORM await_decision(NEW.crm_id, NEW.appointment_id, NEW.id);
      RETURN NULL;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.present_booking_answer(the_crm text, the_participation uuid, timeslot_reference text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN coalesce(
    jsonb_build_object('id', the_participation, 'created', false) || booking_content(the_crm, the_participation, timeslot_reference), retry_answer('stale'));
END
$function$;

CREATE OR REPLACE FUNCTION public.price_json(price_value numeric, price_currency text)
 RETURNS TABLE(content json)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT row_to_json(fields) FROM (SELECT price_value AS value, price_currency AS currency) AS fields WHERE price_value IS NOT NULL
$function$;

CREATE OR REPLACE FUNCTION public.read_appointment(request jsonb)
 RETURNS TABLE(appointment text)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  present timestamptz := scheduling_now(the_crm);
BEGIN
  RETURN QUERY
  SELECT (
      SELECT content FROM appointment AS wanted, appointment_json(wanted, present, (request ->> 'archiveAfterDays')::integer)
       WHERE wanted.crm_id = the_crm AND wanted.provider_id = the_provider AND wanted.reference = request ->> 'reference'
         AND (wanted.when_empty IS NULL OR NOT (SELECT ended FROM ended(wanted, present))))
    FROM provider
   WHERE crm_id = the_crm AND id = the_provider AND version = (request ->> 'providerVersion')::integer;
END
$function$;

CREATE OR REPLACE FUNCTION public.read_appointments(request jsonb)
 RETURNS TABLE(id uuid, "startsAt" timestamp with time zone, appointment text)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_size integer := request ->> 'size';
  max_participations integer := request ->> 'participations';
  present timestamptz := scheduling_now(the_crm);
  archive_after_days integer := request ->> 'archiveAfterDays';
  appointment_ids uuid[];
  max_few CONSTANT integer := 2000;
  -- Those with the metadata, if they are few.
  few_ids uuid[];
BEGIN
  IF NOT is_present_provider(request) THEN RETURN; END IF;

  IF request ? 'metadata' THEN
    -- They are in no order, so each part reads all of them, unless they are many: then reading all appointments in their order finds some soon.
    EXECUTE
      'SELECT ARRAY(
         SELECT id FROM appointment
          WHERE metadata IS NOT NULL AND jsonb_set(''{}'', ARRAY[provider_id::text], metadata) @> $1
          LIMIT $2)'
      INTO few_ids
      USING jsonb_build_object(the_provider, request -> 'metadata'), max_few + 1;
    IF cardinality(few_ids) > max_few THEN few_ids := NULL; END IF;
  END IF;

  -- Planned for these values: which index is best depends on them.
  EXECUTE concat(
    'SELECT ARRAY(
       SELECT id
         FROM appointment
        WHERE crm_id = $1 AND provider_id = $2 AND starts_at < $3 AND ends_at > $4 AND (starts_at, id) > ($5, $6)
          AND (when_empty IS NULL OR NOT (SELECT ended FROM ended(appointment, $11)))',
    CASE WHEN request ? 'productReference' THEN ' AND product_reference = $7' END,
    CASE WHEN request ? 'resourceReference' THEN ' AND resource_reference = $8' END,
    CASE WHEN request ? 'state' THEN ' AND state = $9' END,
    CASE WHEN request ? 'metadata' THEN ' AND metadata @> $12' END,
    CASE WHEN few_ids IS NOT NULL THEN ' AND id = ANY ($13)' END,
    ' ORDER BY starts_at, id
        LIMIT $10)')
    INTO appointment_ids
    USING the_crm, the_provider,
      coalesce((request ->> 'to')::timestamptz, 'infinity'),
      greatest((request ->> 'from')::timestamptz, CASE WHEN (request ->> 'includeArchived')::boolean THEN '-infinity' ELSE archived_until(present, archive_after_days) END),
      coalesce((request #>> '{after,startsAt}')::timestamptz, '-infinity'),
      coalesce(request #>> '{after,id}', '00000000-0000-0000-0000-000000000000')::uuid,
      request ->> 'productReference', request ->> 'resourceReference', request ->> 'state', max_size + 1, present,
      request -> 'metadata', few_ids;

  RETURN QUERY
  SELECT appointment.id, appointment.starts_at, CASE WHEN fits THEN (SELECT content FROM appointment_json(appointment, present, archive_after_days)) END
    FROM (
      SELECT counted.id, number, number = 1 OR number <= max_size AND sum(participations) OVER (ORDER BY number) <= max_participations AS fits
        FROM (
          SELECT listed.id, number, (
              SELECT count(*) FROM (
                SELECT FROM participation
                 WHERE participation.crm_id = the_crm AND participation.appointment_id = listed.id
                 LIMIT max_participations + 1) AS each) AS participations
            FROM unnest(appointment_ids) WITH ORDINALITY AS listed (id, number)) AS counted) AS summed
    JOIN appointment ON appointment.crm_id = the_crm AND appointment.id = summed.id
   ORDER BY number;
  IF NOT FOUND THEN RETURN NEXT; END IF;
END
$function$;

CREATE OR REPLACE FUNCTION public.read_appointments_by_id(request jsonb)
 RETURNS TABLE(appointment text)
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
BEGIN
  RETURN QUERY
  SELECT content
    FROM jsonb_array_elements_text(request -> 'ids') WITH ORDINALITY AS wanted (id, number)
    JOIN appointment AS stored ON stored.crm_id = the_crm AND stored.id = wanted.id::uuid
   CROSS JOIN appointment_json(stored, present, (request ->> 'archiveAfterDays')::integer)
   ORDER BY number;
END
$function$;

CREATE OR REPLACE FUNCTION public.read_blocks(request jsonb)
 RETURNS TABLE(id uuid, reference text, "resourceReference" text, "startsAt" timestamp with time zone, "endsAt" timestamp with time zone, note text)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT id, reference, resource_reference, starts_at, ends_at, note
    FROM overlapping_blocks(
           request ->> 'crmId', (request ->> 'providerId')::uuid, request ->> 'resourceReference', (request ->> 'from')::timestamptz,
           (request ->> 'to')::timestamptz)
   WHERE (starts_at, id) > (
           coalesce((request #>> '{after,startsAt}')::timestamptz, '-infinity'),
           coalesce((request #>> '{after,id}')::uuid, '00000000-0000-0000-0000-000000000000'))
   ORDER BY starts_at, id
   LIMIT (request ->> 'rows')::integer;
END
$function$;

CREATE OR REPLACE FUNCTION public.read_booking(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN booking_content(request ->> 'crmId', (request ->> 'participationId')::uuid, request ->> 'timeslotReference');
END
$function$;

CREATE OR REPLACE FUNCTION public.read_calendar(request jsonb)
 RETURNS TABLE(digest text, "changedAt" bigint, fingerprint text, "comparedAt" timestamp with time zone, "isUnchanged" boolean, facts text, shown json)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
  compared_now timestamptz := clock_timestamp();
  subscription calendar_subscription;
  reader_is_current boolean;
  appointment_ids uuid[];
  new_fingerprint text;
  nothing_changed boolean;
  all_facts text;
BEGIN
  SELECT * INTO subscription FROM calendar_subscription WHERE crm_id = the_crm AND id = (request ->> 'subscriptionId')::uuid;
  IF NOT FOUND THEN RETURN; END IF;
  reader_is_current := coalesce(extract(epoch FROM subscription.changed_at)::bigint = (request ->> 'version')::bigint, false);

  -- Planned for these values: which index is best depends on them. With EXISTS, Postgres might read all participations.
  EXECUTE concat(
    'SELECT coalesce(array_agg(id ORDER BY starts_at, id), ''{}''),
            md5(concat($7, string_agg(concat(id, '' '', event_count, '' '', revision, '' '', CASE WHEN ends_at <= $8 THEN (
              SELECT coalesce(string_agg(participation.changed_at::text, '','' ORDER BY participation.id), ''nobody'')
                FROM participation
               WHERE participation.crm_id = $1 AND participation.appointment_id = listed.id) END), E''\n'' ORDER BY starts_at, id)))
       FROM (
         SELECT id, starts_at, ends_at, event_count, revision
           FROM appointment
          WHERE crm_id = $1 AND provider_id = $2 AND starts_at >= $3 AND starts_at < $4 AND state = ''ACTIVE''
            AND (when_empty IS NULL OR (
              SELECT true FROM participation
               WHERE participation.crm_id = $1 AND participation.appointment_id = appointment.id AND participation.state IN (''BOOKED'', ''REQUESTED'')
               LIMIT 1))',
    CASE WHEN subscription.resource_reference IS NOT NULL THEN ' AND resource_reference = $5' END,
    CASE WHEN subscription.contact_reference IS NOT NULL THEN ' AND contact_reference = $6' END,
    '      ORDER BY starts_at, id
          LIMIT 5000) AS listed')
    INTO appointment_ids, new_fingerprint
    USING the_crm, subscription.provider_id, present - interval '720 hours', present + interval '9600 hours',
      subscription.resource_reference, subscription.contact_reference, request ->> 'textVersion',
      CASE
        WHEN subscription.details = 'NONE' THEN '-infinity'
        WHEN EXISTS (SELECT FROM sandbox_clock WHERE crm_id = the_crm) THEN 'infinity'
        ELSE present END;
  nothing_changed := coalesce(subscription.fingerprint = new_fingerprint, false) AND (subscription.details = 'NONE' OR NOT EXISTS (
    SELECT FROM customer
     WHERE customer.crm_id = the_crm AND customer.provider_id = subscription.provider_id
       AND customer.refreshed_at > subscription.compared_at - interval '1 minute'));

  IF NOT (nothing_changed AND reader_is_current) THEN
    SELECT coalesce(string_agg(
        json_build_array(
          listed.id, extract(epoch FROM listed.starts_at)::bigint, extract(epoch FROM listed.ends_at)::bigint,
          listed.description, listed.product_reference, listed.address, listed.capacity, booked, requested,
          CASE WHEN subscription.details <> 'NONE' AND named <= 10000 THEN (
            SELECT json_agg(person ORDER BY participation_id)
              FROM (
                SELECT participation.id AS participation_id, CASE subscription.details
                    WHEN 'CONTACT' THEN json_build_array(
                      participation.state = 'BOOKED', coalesce(customer.user_name, participation.name), coalesce(customer.mobile, participation.mobile),
                      coalesce(customer.email, participation.email), participation.note)
                    ELSE json_build_array(participation.state = 'BOOKED', coalesce(customer.user_name, participation.name)) END AS person
                  FROM participation
                  LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
                 WHERE participation.crm_id = the_crm AND participation.appointment_id = listed.id AND participation.state IN ('BOOKED', 'REQUESTED')
                 ORDER BY participation.id
                 LIMIT 200) AS persons) END)::text,
        E'\n' ORDER BY number), '')
      INTO all_facts
      FROM (
        SELECT found_appointment.*, number, booked, requested, sum(least(booked + requested, 200)) OVER (ORDER BY number) AS named
          FROM unnest(appointment_ids) WITH ORDINALITY AS wanted (appointment_id, number)
         -- For each of them, even where Postgres would rather read all appointments.
         CROSS JOIN LATERAL (
           SELECT id, starts_at, ends_at, description, product_reference, address, capacity
             FROM appointment
            WHERE appointment.crm_id = the_crm AND appointment.id = wanted.appointment_id
            LIMIT 1) AS found_appointment
         CROSS JOIN LATERAL (
           SELECT count(*) FILTER (WHERE state = 'BOOKED') AS booked, count(*) FILTER (WHERE state = 'REQUESTED') AS requested
             FROM participation
            WHERE participation.crm_id = the_crm AND participation.appointment_id = wanted.appointment_id) AS seats) AS listed;
  END IF;

  RETURN QUERY
  SELECT encode(subscription.digest, 'hex'), extract(epoch FROM subscription.changed_at)::bigint, new_fingerprint, compared_now, nothing_changed, all_facts,
    CASE WHEN NOT reader_is_current THEN (
      SELECT coalesce(json_object_agg(shown_appointment.appointment_id, extract(epoch FROM shown_appointment.changed_at)::bigint), '{}')
        FROM shown_appointment
       WHERE shown_appointment.crm_id = the_crm AND shown_appointment.subscription_id = subscription.id) END;
END
$function$;

CREATE OR REPLACE FUNCTION public.read_day(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
BEGIN
  RETURN (
    WITH place AS MATERIALIZED (
      SELECT appointment.id AS appointment_id, appointment.starts_at, participation.id AS participation_id, participation.state,
             row_number() OVER (ORDER BY appointment.starts_at, appointment.id, participation.id) AS number
        FROM day_appointments(the_crm, (request ->> 'providerId')::uuid, (request ->> 'dayStart')::timestamptz, (request ->> 'dayEnd')::timestamptz) AS appointment
        LEFT JOIN LATERAL (
          SELECT id, state FROM participation
           WHERE crm_id = the_crm AND appointment_id = appointment.id AND state IN ('BOOKED', 'REQUESTED') OFFSET 0) AS participation ON true
    ), listed AS (
      SELECT place.appointment_id, min(number) AS number,
             coalesce(jsonb_agg(jsonb_build_object(
               'participationId', participation.id, 'customerId', participation.customer_id, 'state', participation.state,
               'name', coalesce(customer.user_name, participation.name), 'email', coalesce(customer.email, participation.email),
               'mobile', coalesce(customer.mobile, participation.mobile)) ORDER BY number) FILTER (WHERE participation.id IS NOT NULL), '[]') AS participations
        FROM place
        LEFT JOIN LATERAL (SELECT * FROM participation WHERE crm_id = the_crm AND id = place.participation_id OFFSET 0) AS participation ON true
        LEFT JOIN LATERAL (SELECT * FROM customer WHERE crm_id = the_crm AND id = participation.customer_id OFFSET 0) AS customer ON true
       WHERE number <= (request ->> 'limit')::bigint
       GROUP BY place.appointment_id
    )
    SELECT jsonb_build_object(
        'appointments', (
          SELECT coalesce(jsonb_agg(jsonb_build_object(
              'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at, 'description', appointment.description, 'address', appointment.address,
              'participations', listed.participations) ORDER BY listed.number), '[]')
            FROM listed
           CROSS JOIN LATERAL (SELECT * FROM appointment WHERE crm_id = the_crm AND id = listed.appointment_id OFFSET 0) AS appointment),
        'booked', count(*) FILTER (WHERE state = 'BOOKED'),
        'requested', count(*) FILTER (WHERE state = 'REQUESTED'),
        'unlisted', greatest(0, count(*) - (request ->> 'limit')::bigint))
      FROM place);
END
$function$;

CREATE OR REPLACE FUNCTION public.read_own_booking(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'participationId', participation.id, 'reference', participation.reference, 'version', participation.version, 'state', participation.state,
        'customerId', participation.customer_id, 'name', participation.name, 'email', participation.email,
        'reservedUntil', participation.reserved_until, 'attendanceConfirmedAt', participation.attendance_confirmed_at,
        'providerId', provider.id, 'providerReference', provider.reference, 'timeZone', provider.time_zone,
        'appointmentReference', appointment.reference, 'description', appointment.description, 'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at,
        'address', appointment.address, 'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'productReference', appointment.product_reference, 'resourceReference', appointment.resource_reference,
        'emptiedAppointmentId', CASE WHEN ends_without(participation.crm_id, appointment.id, participation.id) THEN appointment.id END,
        'now', present, 'cancellableUntil', rights.cancellable_until, 'movableUntil', rights.movable_until,
        'cancellable', rights.is_cancellable, 'movable', rights.is_movable, 'confirmable', rights.is_confirmable)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      JOIN provider ON provider.crm_id = appointment.crm_id AND provider.id = appointment.provider_id
     CROSS JOIN own_booking_rights(participation, appointment, present) AS rights
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND participation.state <> 'DELETED'
       -- Nobody knows whose an anonymised one was. A reservation may have nobody yet.
       AND (participation.customer_id IS NOT NULL OR participation.name IS NOT NULL OR participation.state = 'RESERVED')
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present)
       AND appointment.ends_at + interval '720 hours' > present);
END
$function$;

CREATE OR REPLACE FUNCTION public.read_page_choice(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'participationId', participation.id, 'reference', participation.reference, 'state', participation.state, 'reservedUntil', participation.reserved_until,
        'appointmentReference', appointment.reference, 'resourceReference', appointment.resource_reference, 'productReference', appointment.product_reference,
        'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at, 'description', appointment.description, 'address', appointment.address,
        'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'emptiedAppointmentId', CASE WHEN ends_without(the_crm, appointment.id, participation.id) THEN appointment.id END)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
     WHERE participation.crm_id = the_crm AND participation.reference IN (SELECT jsonb_array_elements_text(request -> 'references'))
       AND appointment.provider_id = (request ->> 'providerId')::uuid
       AND (participation.reserved_until > scheduling_now(the_crm) OR participation.customer_id IS NOT NULL)
     ORDER BY participation.state = 'RESERVED'
     LIMIT 1);
END
$function$;

CREATE OR REPLACE FUNCTION public.read_participation(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
  stored participation%ROWTYPE;
BEGIN
  IF request ? 'participationId' THEN
    SELECT * INTO stored FROM participation WHERE crm_id = the_crm AND id = (request ->> 'participationId')::uuid;
  ELSE
    SELECT * INTO stored FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference';
  END IF;
  IF stored.reserved_until <= present THEN RETURN NULL; END IF;
  RETURN (
    SELECT jsonb_build_object('id', stored.id, 'appointmentReference', reference, 'participation', participation_text(the_crm, stored.id))
      FROM appointment
     WHERE crm_id = the_crm AND id = stored.appointment_id AND provider_id = coalesce((request ->> 'providerId')::uuid, provider_id));
END
$function$;

CREATE OR REPLACE FUNCTION public.read_participation_mail_data(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'currentVersion', last_mailable_version(participation),
        'reference', participation.reference, 'customerId', participation.customer_id,
        'name', participation.name, 'email', participation.email, 'mobile', participation.mobile, 'note', participation.note, 'state', participation.state,
        'message', (
          SELECT text FROM participation_message AS message
           WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id AND message.version = (request ->> 'version')::bigint),
        'providerId', appointment.provider_id, 'contactReference', appointment.contact_reference, 'description', appointment.description, 'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at,
        'address', appointment.address, 'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'previous', told_before(request),
        'selfService', coalesce(rules.self_service, rules.page, false),
        'hasPublicPage', coalesce(rules.page AND rules.access = 'PUBLIC', false),
        'cancellableUntil', CASE WHEN rights.is_cancellable THEN rights.cancellable_until END,
        'movableUntil', CASE WHEN rights.is_movable THEN rights.movable_until END)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      LEFT JOIN booking_rules AS rules ON rules.crm_id = appointment.crm_id AND rules.provider_id = appointment.provider_id
     CROSS JOIN own_booking_rights(participation, appointment, present) AS rights
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present));
END
$function$;

CREATE OR REPLACE FUNCTION public.read_participations(request jsonb)
 RETURNS TABLE(participation text, "startsAt" timestamp with time zone, "appointmentId" uuid, "participationId" uuid)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_size integer := request ->> 'size';
  max_rows integer := request ->> 'rows';
  present timestamptz := scheduling_now(the_crm);
  lowest_id CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  wanted_metadata jsonb := request -> 'metadata';
  -- The candidates, if they are few.
  few_ids uuid[];
  row_count integer := 0;
  next record;
  last record;
  participation_ids uuid[] := '{}';
  has_more boolean := false;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN; END IF;

  IF request ? 'customerId' OR request ? 'metadata' THEN
    -- Those of a customer, and those with metadata, are in no order, so each part reads all of them, unless they are more than it may read.
    EXECUTE concat(
      'SELECT ARRAY(SELECT id FROM participation WHERE crm_id = $1',
      CASE WHEN request ? 'customerId' THEN ' AND customer_id = $2' END,
      CASE WHEN request ? 'metadata' THEN ' AND metadata IS NOT NULL AND jsonb_set(''{}'', ARRAY[crm_id], metadata) @> $3' END,
      ' LIMIT $4)')
      INTO few_ids
      USING the_crm, (request ->> 'customerId')::uuid, jsonb_build_object(the_crm, wanted_metadata), max_rows + 1;
    IF cardinality(few_ids) > max_rows THEN few_ids := NULL; END IF;
  END IF;

  -- Planned for these values: which index is best depends on them.
  FOR next IN EXECUTE concat(
    'SELECT appointment.starts_at, appointment.id AS appointment_id, participation.id,
            participation.id IS NOT NULL AND ($8 IS NULL OR participation.customer_id = $8) AND ($9 IS NULL OR participation.state = $9)
              AND ($14 IS NULL OR coalesce(participation.metadata @> $14, false)) AND ($15 IS NULL OR participation.no_show = $15)
              AND ($10 IS NULL OR participation.changed_at >= $10) AND (participation.reserved_until IS NULL OR participation.reserved_until > $11) AS is_listed
       FROM appointment',
    CASE WHEN few_ids IS NOT NULL THEN
      ' JOIN participation ON participation.crm_id = $1 AND participation.id = ANY ($16) AND participation.appointment_id = appointment.id
         AND (appointment.starts_at, appointment.id, participation.id) > ($5, $6, $7)'
    ELSE
      -- An appointment without any is a row, too, so that the rows limit how many appointments are read.
      ' LEFT JOIN LATERAL (
          SELECT * FROM participation
           WHERE crm_id = $1 AND appointment_id = appointment.id AND id > CASE WHEN appointment.id = $6 THEN $7 ELSE $12 END
           ORDER BY id
           LIMIT $13) AS participation ON true'
    END,
    ' WHERE appointment.crm_id = $1 AND appointment.provider_id = $2 AND appointment.starts_at < $3 AND appointment.ends_at > $4
        AND (appointment.starts_at, appointment.id) >= ($5, $6)
      ORDER BY appointment.starts_at, appointment.id, participation.id
      LIMIT $13')
    USING the_crm, the_provider,
      coalesce((request ->> 'to')::timestamptz, 'infinity'), coalesce((request ->> 'from')::timestamptz, '-infinity'),
      coalesce((request #>> '{after,startsAt}')::timestamptz, '-infinity'),
      coalesce((request #>> '{after,appointmentId}')::uuid, lowest_id), coalesce((request #>> '{after,participationId}')::uuid, lowest_id),
      (request ->> 'customerId')::uuid, request ->> 'state', (request ->> 'changedSince')::timestamptz, present, lowest_id, max_rows + 1,
      wanted_metadata, (request ->> 'noShow')::boolean, few_ids
  LOOP
    has_more := row_count = max_rows OR next.is_listed AND cardinality(participation_ids) = max_size;
    EXIT WHEN has_more;
    row_count := row_count + 1;
    last := next;
    IF next.is_listed THEN participation_ids := participation_ids || next.id; END IF;
  END LOOP;

  RETURN QUERY
  SELECT content::text, appointment.starts_at, appointment.id, participation.id
    FROM unnest(participation_ids) WITH ORDINALITY AS listed (id, number)
    JOIN participation ON participation.crm_id = the_crm AND participation.id = listed.id
    JOIN appointment ON appointment.crm_id = the_crm AND appointment.id = participation.appointment_id
    LEFT JOIN customer ON customer.crm_id = the_crm AND customer.id = participation.customer_id
   CROSS JOIN participation_json(participation, appointment.reference, customer)
   ORDER BY number;
  IF has_more THEN
    RETURN QUERY SELECT NULL, last.starts_at, last.appointment_id, coalesce(last.id, lowest_id);
  ELSIF cardinality(participation_ids) = 0 THEN
    RETURN NEXT;
  END IF;
END
$function$;

CREATE OR REPLACE FUNCTION public.read_requested_booking(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'participationId', participation.id, 'state', participation.state, 'customerId', participation.customer_id,
        'name', participation.name, 'email', participation.email, 'mobile', participation.mobile, 'note', participation.note,
        'message', (
          SELECT text FROM participation_message AS message
           WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id AND message.version = 1),
        'providerId', provider.id, 'providerReference', provider.reference, 'timeZone', provider.time_zone, 'appointmentReference', appointment.reference,
        'description', appointment.description, 'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at, 'address', appointment.address,
        'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'capacity', appointment.capacity,
        'taken', appointment.taken - (
          SELECT count(*) FROM participation AS hold
           WHERE hold.crm_id = appointment.crm_id AND hold.appointment_id = appointment.id AND hold.reserved_until <= present),
        'others', (
          SELECT count(*) FROM participation AS other
           WHERE other.crm_id = participation.crm_id AND other.appointment_id = appointment.id AND other.state = 'REQUESTED' AND other.id <> participation.id),
        'now', present, 'shown', shown_of(appointment), 'confirmed', decision.confirmed, 'decidedBy', decision.recipient_id, 'decidedAt', decision.decided_at)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      JOIN provider ON provider.crm_id = appointment.crm_id AND provider.id = appointment.provider_id
      LEFT JOIN participation_decision AS decision ON decision.crm_id = participation.crm_id AND decision.participation_id = participation.id
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND participation.state IN ('REQUESTED', 'BOOKED', 'CANCELED')
       -- Nobody knows whose an anonymised one was.
       AND (participation.customer_id IS NOT NULL OR participation.name IS NOT NULL)
       AND appointment.ends_at + interval '720 hours' > present);
END
$function$;

CREATE OR REPLACE FUNCTION public.read_slots(request jsonb)
 RETURNS TABLE("from" bigint, "to" bigint, "isLimited" boolean, timeslots json, appointments json, occupied json)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_rows integer := request ->> 'rows';
  present timestamptz := scheduling_now(the_crm);
  slot_minutes integer := request ->> 'minutes';
  the_resource text := request ->> 'resourceReference';
  the_product text := request ->> 'productReference';
  leaving_id uuid := request ->> 'leaving';
  period_start timestamptz;
  period_end timestamptz;
  limited_end timestamptz;
  opening_ids uuid[];
  open_ids uuid[];
BEGIN
  IF NOT is_present_provider(request) THEN RETURN; END IF;

  -- The end does not belong to the period, and slots begin in whole milliseconds.
  SELECT greatest((request ->> 'from')::timestamptz, bounds.earliest), least((request ->> 'to')::timestamptz, bounds.latest + interval '1 millisecond')
    INTO period_start, period_end
    FROM booking_bounds(the_crm, the_provider, present, (request ->> 'ignoreNotice')::boolean) AS bounds;
  "isLimited" := false;

  SELECT array_agg(id ORDER BY rank) FILTER (WHERE rank <= max_rows), max(starts_at) FILTER (WHERE rank > max_rows)
    INTO opening_ids, limited_end
    FROM (
      SELECT id, starts_at, row_number() OVER (ORDER BY starts_at, id) AS rank
        FROM first_timeslots(the_crm, the_provider, the_resource, period_start, period_end, max_rows + 1)
       ORDER BY starts_at, id
       LIMIT max_rows + 1) AS listed;
  IF limited_end IS NOT NULL THEN "isLimited" := true; period_end := limited_end; END IF;

  -- One of the two halves of the union has nothing to read: which index is best depends on whether a resource is given.
  -- The product is compared after the rows were counted, so that no more of them are read.
  SELECT array_agg(id ORDER BY rank) FILTER (WHERE rank <= max_rows AND accept_bookings AND product_reference = coalesce(the_product, product_reference)),
         max(starts_at) FILTER (WHERE rank > max_rows)
    INTO open_ids, limited_end
    FROM (
      SELECT id, starts_at, accept_bookings, product_reference, row_number() OVER (ORDER BY starts_at, id) AS rank
        FROM (
          (SELECT * FROM appointment
            WHERE the_resource IS NULL
              AND crm_id = the_crm AND provider_id = the_provider AND starts_at >= period_start AND starts_at < period_end AND state = 'ACTIVE'
            ORDER BY starts_at, id LIMIT max_rows + 1)
           UNION ALL
          (SELECT * FROM appointment
            WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND starts_at >= period_start AND starts_at < period_end
              AND state = 'ACTIVE'
            ORDER BY starts_at, id LIMIT max_rows + 1)) AS appointment) AS listed;
  IF limited_end IS NOT NULL THEN "isLimited" := true; period_end := limited_end; END IF;

  "from" := epoch_ms(period_start);
  "to" := epoch_ms(period_end);
  timeslots := (
    SELECT json_agg(json_build_array(
             id, reference, resource_reference, epoch_ms(starts_at), epoch_ms(ends_at), raster, details.content::text,
             occupied_key(resource_reference, buffer_before, buffer_after)) ORDER BY starts_at, id)
      FROM timeslot
     CROSS JOIN slot_details(resource_reference, NULL, NULL, NULL, default_capacity, default_capacity, address, NULL, NULL) AS details
     WHERE crm_id = the_crm AND id = ANY (opening_ids));
  appointments := (
    -- Read once for each resource, which may have many.
    WITH blocked AS MATERIALIZED (
      SELECT resource_reference, periods
        FROM (SELECT DISTINCT resource_reference FROM appointment WHERE crm_id = the_crm AND id = ANY (open_ids)) AS open,
             LATERAL (
               SELECT range_agg(tstzrange(starts_at, ends_at)) AS periods
                 FROM overlapping_blocks(the_crm, the_provider, open.resource_reference, period_start, 'infinity')) AS of_resource
       WHERE periods IS NOT NULL)
    SELECT json_agg(json_build_array(
             id, resource_reference, epoch_ms(starts_at), epoch_ms(ends_at), details.content::text, when_empty IS NOT NULL) ORDER BY starts_at, id)
      FROM appointment
     CROSS JOIN occupancy(appointment, present) AS seats
     CROSS JOIN appointment_slot_details(appointment, seats.taken) AS details
     WHERE crm_id = the_crm AND id = ANY (open_ids) AND starts_at < period_end AND NOT seats.abandoned AND seats.taken < capacity
       AND NOT EXISTS (
         SELECT FROM blocked WHERE blocked.resource_reference = appointment.resource_reference AND periods && tstzrange(starts_at, ends_at)));
  occupied := (
    SELECT json_object_agg(occupied_key(resource_reference, buffer_before, buffer_after), periods)
      FROM (
        SELECT opening.resource_reference, opening.buffer_before, opening.buffer_after, (
            SELECT json_agg(json_build_array(epoch_ms(lower(period)), epoch_ms(upper(period))) ORDER BY period)
              FROM unnest((
                SELECT range_agg(busy)
                  FROM (
                    SELECT tstzrange(
                             starts_at - make_interval(mins => greatest(opening.buffer_after, buffer_before)),
                             ends_at + make_interval(mins => greatest(opening.buffer_before, buffer_after))) AS busy
                      FROM near_appointments(
                             the_crm, the_provider, opening.resource_reference, period_start, opening.until, opening.buffer_before, opening.buffer_after) AS appointment
                     -- Only what a booking made can be abandoned: of others, no participations are read.
                     WHERE (when_empty IS NULL OR NOT (SELECT abandoned FROM occupancy(appointment, present))) AND id IS DISTINCT FROM leaving_id
                     UNION ALL
                    SELECT tstzrange(starts_at, ends_at)
                      FROM overlapping_blocks(the_crm, the_provider, opening.resource_reference, period_start, opening.until)) AS of_resource)) AS period) AS periods
          FROM (
            SELECT resource_reference, buffer_before, buffer_after,
                   least(period_end + make_interval(mins => coalesce(slot_minutes, max(raster)::integer)), max(ends_at)) AS until
              FROM timeslot
             WHERE crm_id = the_crm AND id = ANY (opening_ids)
               -- Others have no place of this length.
               AND (slot_minutes IS NULL OR slot_minutes % raster = 0 AND ends_at - starts_at >= make_interval(mins => slot_minutes))
             GROUP BY resource_reference, buffer_before, buffer_after) AS opening) AS of_resources
     WHERE periods IS NOT NULL);
  RETURN NEXT;
END
$function$;

CREATE OR REPLACE FUNCTION public.read_timeslots(request jsonb)
 RETURNS TABLE("timeslotId" uuid, "timeslotStartsAt" timestamp with time zone, "appointmentId" uuid, "appointmentStartsAt" timestamp with time zone, "rowCount" bigint, timeslot text, appointment text)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_rows integer := request ->> 'rows';
  present timestamptz := scheduling_now(the_crm);
  archive_after_days integer := request ->> 'archiveAfterDays';
  lowest_id CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  highest_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  -- The timeslot with which the previous part ended, and the appointment, if the timeslot has more.
  last_start timestamptz := coalesce((request #>> '{timeslot,startsAt}')::timestamptz, '-infinity');
  last_id uuid := coalesce(request #>> '{timeslot,id}', request #>> '{ids,0}', lowest_id::text);
  last_appointment_start timestamptz := request #>> '{appointment,startsAt}';
  last_appointment_id uuid := request #>> '{appointment,id}';
  until_start timestamptz := coalesce((request #>> '{until,startsAt}')::timestamptz, 'infinity');
  until_id uuid := coalesce((request #>> '{until,id}')::uuid, highest_id);
  period_start timestamptz := request ->> 'from';
  period_end timestamptz := request ->> 'to';
  timeslot_ids uuid[];
BEGIN
  IF NOT is_present_provider(request) THEN RETURN; END IF;

  IF request ? 'ids' THEN
    timeslot_ids := ARRAY(
      SELECT timeslot.id
        FROM jsonb_array_elements_text(request -> 'ids') WITH ORDINALITY AS given (id, rank)
       -- One by one, whatever the plan assumes about the provider.
       CROSS JOIN LATERAL (SELECT id FROM timeslot WHERE crm_id = the_crm AND provider_id = the_provider AND id = given.id::uuid LIMIT 1) AS timeslot
       ORDER BY rank);
  ELSE
    -- One more than the part may have: each is at least one row.
    timeslot_ids := ARRAY(
      SELECT id
        FROM timeslot
       WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = request ->> 'resourceReference'
         AND starts_at < period_end AND ends_at > period_start
         AND (starts_at, id) >= (last_start, last_id) AND (id <> last_id OR last_appointment_id IS NOT NULL)
         AND (starts_at, id) <= (until_start, until_id)
       ORDER BY starts_at, id
       LIMIT max_rows + 1);
  END IF;

  RETURN QUERY
  WITH RECURSIVE
  -- Each step adds a timeslot while there is room. An appointment is in the array as often as it has rows. OFFSET 0 means that this is read only once.
  filled AS (
    SELECT 0 AS number, NULL::uuid AS timeslot_id, NULL::timestamptz AS timeslot_start, '{}'::uuid[] AS appointment_ids, 0 AS size, max_rows + 1 AS room
    UNION ALL
    SELECT filled.number + 1, timeslot.id, timeslot.starts_at, found.ids, cardinality(found.ids), filled.room - greatest(1, cardinality(found.ids))
      FROM filled
      JOIN timeslot ON timeslot.crm_id = the_crm AND timeslot.id = timeslot_ids[filled.number + 1],
      LATERAL (SELECT timeslot.id = last_id AND last_appointment_start >= timeslot.starts_at) AS begun (is_continued),
      LATERAL (SELECT ARRAY(
        SELECT appointment.id
          FROM appointment
          LEFT JOIN LATERAL (
            SELECT FROM participation
             WHERE participation.crm_id = the_crm AND participation.appointment_id = appointment.id
             LIMIT max_rows) AS counted ON true
         WHERE appointment.crm_id = the_crm AND appointment.provider_id = the_provider
           AND appointment.resource_reference = timeslot.resource_reference
           AND (appointment.starts_at, appointment.id) >
               (CASE WHEN is_continued THEN last_appointment_start ELSE timeslot.starts_at END, CASE WHEN is_continued THEN last_appointment_id ELSE lowest_id END)
           -- The first is implied by the second, but limits the part of the index that is read.
           AND appointment.starts_at < timeslot.ends_at AND appointment.ends_at <= timeslot.ends_at
           AND (appointment.when_empty IS NULL OR NOT (SELECT ended FROM ended(appointment, present)))
         ORDER BY appointment.starts_at, appointment.id
         LIMIT filled.room) OFFSET 0) AS found (ids)
     WHERE filled.room > 0),
  -- Without room, the last pair is one more than the part may have.
  pairs AS (
    SELECT number, timeslot_id, timeslot_start, listed.id AS appointment_id, coalesce(min(listed.rank), 1) AS rank,
        CASE WHEN room > 0 OR max(listed.rank) < size THEN count(*) END AS row_count
      FROM filled LEFT JOIN LATERAL unnest(appointment_ids) WITH ORDINALITY AS listed (id, rank) ON true
     WHERE number > 0
     GROUP BY number, timeslot_id, timeslot_start, size, room, listed.id)
  SELECT timeslot_id, timeslot_start, pairs.appointment_id, written.starts_at, row_count,
      CASE WHEN rank = 1 AND row_count IS NOT NULL THEN (
        SELECT content FROM timeslot, timeslot_json(timeslot)
         WHERE timeslot.crm_id = the_crm AND timeslot.id = timeslot_id) END,
      written.content
    FROM pairs
    LEFT JOIN LATERAL (
      SELECT appointment.starts_at, CASE WHEN row_count IS NOT NULL THEN (SELECT content FROM appointment_json(appointment, present, archive_after_days)) END AS content
        FROM appointment
       WHERE appointment.crm_id = the_crm AND appointment.id = pairs.appointment_id
      OFFSET 0) AS written ON true
   ORDER BY number, rank;
  IF NOT FOUND THEN RETURN NEXT; END IF;
END
$function$;

CREATE OR REPLACE FUNCTION public.reclaim_reservations(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
  the_references text[] := ARRAY(SELECT jsonb_array_elements_text(request -> 'references'));
  locked uuid[] := ARRAY(
    SELECT id FROM appointment
     WHERE crm_id = the_crm
       AND id IN (SELECT appointment_id FROM participation WHERE crm_id = the_crm AND reference = ANY (the_references) AND reserved_until <= present)
     ORDER BY id FOR NO KEY UPDATE);
BEGIN
  RETURN jsonb_build_object('reclaimed', (SELECT coalesce(sum(free_expired_seats(the_crm, id, request -> 'origin')), 0) FROM unnest(locked) AS id));
END
$function$;

CREATE OR REPLACE FUNCTION public.reference_rejection(the_crm text, embedded jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  all_expired boolean;
BEGIN
  -- One by one: otherwise a plan that is made while the table is small reads all of it, also when it has grown.
  SELECT bool_and(coalesce(present.reserved_until <= scheduling_now(the_crm), false)) INTO all_expired
    FROM jsonb_array_elements(embedded) AS each
   CROSS JOIN LATERAL (SELECT reserved_until FROM participation WHERE crm_id = the_crm AND reference = each ->> 'reference' OFFSET 0) AS present;
  RETURN CASE all_expired WHEN true THEN retry_answer('reference') WHEN false THEN error_answer('participation.reference_taken') END;
END
$function$;

CREATE OR REPLACE FUNCTION public.refusal_of_invitation(the_crm text, the_invitation uuid, the_customer uuid)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  permitted integer;
  used jsonb;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('page invitation ' || the_invitation, 0));
  permitted := (
    SELECT bookings FROM invitation
     WHERE crm_id = the_crm AND id = the_invitation AND customer_id = the_customer AND expires_at > scheduling_now(the_crm));
  IF permitted IS NULL THEN RETURN error_answer('link.not_found'); END IF;
  used := use_of_invitation(jsonb_build_object('crmId', the_crm, 'id', the_invitation));
  IF (used ->> 'booked')::integer >= permitted THEN RETURN error_answer('booking_page.invitation_used'); END IF;
  IF (used ->> 'isLimited')::boolean THEN RETURN error_answer('booking_page.limit_reached'); END IF;
  RETURN NULL;
END
$function$;

CREATE OR REPLACE FUNCTION public.release_page_hold(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_appointment uuid := (SELECT appointment_id FROM participation WHERE crm_id = the_crm AND reference = request ->> 'reference' AND state = 'RESERVED');
BEGIN
  PERFORM FROM appointment WHERE crm_id = the_crm AND id = the_appointment FOR NO KEY UPDATE;
  UPDATE participation SET reserved_until = least(reserved_until, scheduling_now(the_crm))
   WHERE crm_id = the_crm AND appointment_id = the_appointment AND reference = request ->> 'reference' AND state = 'RESERVED';
  RETURN jsonb_build_object('reclaimed', free_expired_seats(the_crm, the_appointment, request -> 'origin'));
END
$function$;

CREATE OR REPLACE FUNCTION public.remind(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_appointments integer := request ->> 'limit';
  nothing CONSTANT jsonb := '{"written": 0, "isBehind": false}';
  -- When a participation was changed is known in real time.
  real_present timestamptz;
  present timestamptz;
  clock_set_at timestamptz;
  locked integer;
  answer jsonb;
BEGIN
  -- Whoever has the marks decides. Others do not wait: another replica is writing these reminders, or the rules are being changed, and the next round comes soon.
  SELECT count(*) INTO locked FROM (
    SELECT FROM reminder_mark WHERE crm_id = the_crm AND provider_id = the_provider ORDER BY minutes FOR NO KEY UPDATE SKIP LOCKED) AS marks;
  IF locked = 0 OR locked < (SELECT count(*) FROM reminder_mark WHERE crm_id = the_crm AND provider_id = the_provider) THEN RETURN nothing; END IF;
  -- After the lock, so that it is later than what the previous holder has written.
  real_present := scheduling_now();
  present := scheduling_now(the_crm);
  -- The server's clock was set back. Whoever sets the clock of a sandbox back does this at once.
  UPDATE reminder_mark SET until = present WHERE crm_id = the_crm AND provider_id = the_provider AND until > present;
  SELECT set_at INTO clock_set_at FROM sandbox_clock WHERE crm_id = the_crm;

  WITH mark AS MATERIALIZED (
    SELECT minutes, until, make_interval(mins => minutes) AS lead, least(interval '15 minutes', make_interval(secs => minutes * 30)) AS least_left,
           least(interval '60 minutes', make_interval(secs => minutes * 30)) AS just_read
      FROM reminder_mark
     WHERE crm_id = the_crm AND provider_id = the_provider
  ), due AS MATERIALIZED (
    -- After an outage a mark is behind, and what has less than least_left until its start is left out.
    SELECT mark.minutes, mark.least_left, mark.just_read, appointment.id, appointment.starts_at, appointment.starts_at - mark.lead AS due_at
      FROM mark CROSS JOIN LATERAL (
        SELECT id, starts_at FROM appointment
         WHERE crm_id = the_crm AND provider_id = the_provider AND state = 'ACTIVE'
           AND starts_at >= greatest(mark.until + mark.lead, present + mark.least_left) AND starts_at < present + mark.lead
         ORDER BY starts_at FETCH FIRST max_appointments ROWS WITH TIES) AS appointment
  ), reached AS MATERIALIZED (
    -- How far this call gets: all marks to the same time, so that no shorter reminder is written before a longer one of the same booking is considered.
    SELECT coalesce(
      (SELECT due_at + interval '1 microsecond' FROM due ORDER BY due_at OFFSET max_appointments - 1 LIMIT 1),
      present) AS until
  ), written AS (
    INSERT INTO outbox (subject, data, request_id, traceparent)
    SELECT 'scheduling.calendar.v1.participation-reminder-due',
           json_build_object(
             'crmId', the_crm,
             'participationId', participation.id,
             'version', participation.version,
             'providerId', the_provider,
             'customerId', participation.customer_id,
             'start', moment_json(due.starts_at),
             'minutes', due.minutes,
             'expiresAt', moment_json(due.starts_at - due.least_left + (real_present - present)),
             'previousMailEventId', participation.mail_event_id),
           coalesce(request #>> '{origin,request_id}', gen_random_uuid()::text), request #>> '{origin,traceparent}'
      FROM due CROSS JOIN LATERAL (
        SELECT id, last_mailable_version(participation) AS version, customer_id, mail_event_id, coalesce(arranged_at, changed_at) AS arranged_at FROM participation
         WHERE crm_id = the_crm AND appointment_id = due.id AND state = 'BOOKED') AS participation
     WHERE due.due_at < (SELECT until FROM reached)
       -- Of several reminders of a booking that are due at the same time, which happens after an outage only, the person gets the shortest: the others say the same,
       -- and the time that they were meant for is over. Only what this call would write otherwise counts, or a later one by the marks as they are now. A shorter
       -- length whose mark is past the booking says nothing, because the rule is newer than that: then the longer one is all that the person gets.
       AND NOT EXISTS (
         SELECT FROM mark AS shorter
          WHERE shorter.minutes < due.minutes AND due.starts_at >= shorter.until + shorter.lead AND due.starts_at < present + shorter.lead)
       -- The mail about the booking, its move or its confirmation was just read when the reminder became due, or came later. It has less time for a shorter reminder,
       -- so there is no longer one in its place. How much later it is by the clock of a sandbox is not known of changes before it was set: that counts as long ago.
       AND NOT (participation.arranged_at > due.due_at - (present - real_present) - due.just_read AND participation.arranged_at >= coalesce(clock_set_at, '-infinity'))
    RETURNING 1
  ), moved AS (
    UPDATE reminder_mark SET until = reached.until FROM reached
     WHERE crm_id = the_crm AND provider_id = the_provider AND reminder_mark.until < reached.until
  )
  SELECT jsonb_build_object('written', (SELECT count(*) FROM written), 'isBehind', reached.until < present) INTO answer FROM reached;
  RETURN answer;
END
$function$;

CREATE OR REPLACE FUNCTION public.remind_of_requests(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  max_requests integer := request ->> 'limit';
  real_present timestamptz := scheduling_now();
  answer jsonb;
BEGIN
  WITH clock AS MATERIALIZED (
    SELECT crm_id, scheduling_now(crm_id) AS present FROM sandbox_clock
  ), due AS MATERIALIZED (
    SELECT crm_id, participation_id, remind_at, tell_at, scheduling_now(crm_id) AS present
      FROM waiting_request
     WHERE (crm_id, participation_id) IN (
       (SELECT crm_id, participation_id FROM waiting_request AS waiting
         WHERE due_at <= real_present AND NOT EXISTS (SELECT FROM clock WHERE clock.crm_id = waiting.crm_id)
         ORDER BY due_at LIMIT max_requests)
       UNION ALL
       (SELECT crm_id, participation_id
          FROM clock CROSS JOIN LATERAL (
            SELECT participation_id FROM waiting_request WHERE crm_id = clock.crm_id AND due_at <= clock.present ORDER BY due_at LIMIT max_requests) AS waiting
         LIMIT max_requests))
       FOR UPDATE SKIP LOCKED
  ), said AS MATERIALIZED (
    SELECT due.*, participation.version, participation.customer_id, participation.mail_event_id, appointment.provider_id, appointment.starts_at,
           coalesce(remind_at <= present AND notify_provider, false) AS reminds,
           coalesce(tell_at <= present AND (notify_provider OR confirmation = 'REQUESTED'), false) AS tells,
           appointment.state = 'ACTIVE' AND participation.state = 'REQUESTED' AND starts_at > present AS is_open
      FROM due
      JOIN participation ON participation.crm_id = due.crm_id AND participation.id = due.participation_id
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      LEFT JOIN booking_rules AS rules ON rules.crm_id = appointment.crm_id AND rules.provider_id = appointment.provider_id
  ), written AS (
    INSERT INTO outbox (subject, data, request_id, traceparent)
    SELECT 'scheduling.calendar.v1.participation-undecided',
           json_build_object(
             'crmId', crm_id,
             'participationId', participation_id,
             'version', version,
             'providerId', provider_id,
             'customerId', customer_id,
             'start', moment_json(starts_at),
             'expiresAt', moment_json(starts_at + (real_present - present)),
             'remindProvider', reminds,
             'tellPerson', tells,
             'previousMailEventId', mail_event_id),
           coalesce(request #>> '{origin,request_id}', gen_random_uuid()::text), request #>> '{origin,traceparent}'
      FROM said WHERE is_open AND (reminds OR tells)
    RETURNING 1
  ), ended AS (
    DELETE FROM waiting_request USING said
     WHERE waiting_request.crm_id = said.crm_id AND waiting_request.participation_id = said.participation_id
       AND NOT (is_open AND (said.remind_at > present OR said.tell_at > present) IS TRUE)
  ), changed AS (
    UPDATE waiting_request
       SET remind_at = CASE WHEN said.remind_at > present THEN said.remind_at END, tell_at = CASE WHEN said.tell_at > present THEN said.tell_at END
      FROM said
     WHERE waiting_request.crm_id = said.crm_id AND waiting_request.participation_id = said.participation_id
       AND is_open AND (said.remind_at > present OR said.tell_at > present)
  )
  SELECT jsonb_build_object('written', (SELECT count(*) FROM written), 'isBehind', (SELECT count(*) FROM due) >= max_requests) INTO answer;
  RETURN answer;
END
$function$;

CREATE OR REPLACE FUNCTION public.replace_hours(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  resources text[] := ARRAY(SELECT resource FROM jsonb_array_elements_text(request -> 'resources') AS resource ORDER BY resource);
  covered tstzmultirange := request ->> 'covered';
  present timestamptz;
  -- Timeslots that are hidden, and that the hours have again; those that they do not have any more; and those that the CRM has changed, and that stand for none of their
  -- windows any more.
  shown uuid[];
  unneeded uuid[];
  released uuid[];
  future bigint;
  made bigint;
BEGIN
  PERFORM FROM provider WHERE crm_id = the_crm AND id = the_provider FOR SHARE;
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('clock ' || the_crm, 0));
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  IF request ? 'revision' THEN
    UPDATE resource_hours
       SET revision = gen_random_uuid(), time_zone = request ->> 'timeZone', made_from = (request ->> 'madeFrom')::date, made_until = (request ->> 'madeUntil')::date,
           due_at = (request ->> 'dueAt')::timestamptz
     WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources) AND revision = (request ->> 'revision')::uuid;
    IF NOT FOUND THEN RETURN retry_answer('stale'); END IF;
  ELSE
    INSERT INTO resource_hours (crm_id, provider_id, resource_reference, content, revision, time_zone, made_from, made_until, due_at)
    SELECT the_crm, the_provider, resource, coalesce(request -> 'content', '{}'), gen_random_uuid(), request ->> 'timeZone', (request ->> 'madeFrom')::date,
           (request ->> 'madeUntil')::date, (request ->> 'dueAt')::timestamptz
      FROM unnest(resources) AS resource
    ON CONFLICT (crm_id, provider_id, resource_reference) DO UPDATE
       SET content = excluded.content, revision = excluded.revision, time_zone = excluded.time_zone, made_from = excluded.made_from, made_until = excluded.made_until,
           due_at = excluded.due_at;
    -- Even hours that do not exist had to be locked.
    IF NOT request ? 'content' THEN
      DELETE FROM resource_hours WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources);
    END IF;
  END IF;
  present := scheduling_now(the_crm);
  IF present < (request ->> 'dayStart')::timestamptz OR present >= (request ->> 'dayEnd')::timestamptz
     OR (request ->> 'aheadMs')::bigint <> coalesce((SELECT ahead_ms FROM sandbox_clock WHERE crm_id = the_crm), 0) THEN
    RETURN retry_answer('stale');
  END IF;

  -- No window is longer than that, so the past is not read.
  SELECT coalesce(array_agg(id) FILTER (WHERE is_kept AND from_hours = 'HIDDEN'), '{}'), coalesce(array_agg(id) FILTER (WHERE NOT is_kept), '{}'), count(*)
    INTO shown, unneeded, future
    FROM (
      SELECT id, from_hours, content_digest IN (SELECT decode(digest, 'hex') FROM jsonb_array_elements_text(request -> 'kept') AS digest) AS is_kept
        FROM timeslot
       WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources) AND starts_at > present - interval '48 hours'
         AND ends_at > present AND from_hours IN ('MADE', 'HIDDEN')
       LIMIT (request ->> 'maxTimeslots')::integer + 1) AS of_hours;
  IF future > (request ->> 'maxTimeslots')::integer THEN RETURN error_answer('hours.invalid'); END IF;
  released := ARRAY(
    SELECT id FROM timeslot
     WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = ANY (resources) AND from_hours = 'CHANGED'
       AND content_digest NOT IN (SELECT decode(digest, 'hex') FROM jsonb_array_elements_text(request -> 'kept') AS digest));
  PERFORM FROM timeslot WHERE crm_id = the_crm AND id = ANY (shown || unneeded || released) ORDER BY id FOR UPDATE;
  -- One that the CRM has changed meanwhile is left alone.
  UPDATE timeslot SET state = 'BOOKABLE', from_hours = 'MADE' WHERE crm_id = the_crm AND id = ANY (shown) AND from_hours = 'HIDDEN';
  DELETE FROM timeslot
   WHERE crm_id = the_crm AND id = ANY (unneeded) AND from_hours IN ('MADE', 'HIDDEN')
     -- As lock-timeslot.ts names them for a single one.
     AND NOT EXISTS (
       SELECT FROM appointment
        WHERE appointment.crm_id = the_crm AND appointment.provider_id = the_provider AND appointment.resource_reference = timeslot.resource_reference
          AND appointment.starts_at >= timeslot.starts_at AND appointment.starts_at < timeslot.ends_at AND appointment.ends_at <= timeslot.ends_at
          AND appointment.state = 'ACTIVE' AND (when_empty IS NULL OR NOT (SELECT abandoned FROM occupancy(appointment, present))));
  UPDATE timeslot SET state = 'CREATED', from_hours = 'HIDDEN' WHERE crm_id = the_crm AND id = ANY (unneeded) AND from_hours = 'MADE';
  UPDATE timeslot SET from_hours = NULL WHERE crm_id = the_crm AND id = ANY (released) AND from_hours = 'CHANGED';
  made := open_windows(the_crm, the_provider, resources, request -> 'openings');

  -- Of an appointment that has begun, only the rest counts.
  RETURN jsonb_build_object('made', made) || conflicts_of(ARRAY(
    SELECT reference
      FROM unnest(resources) AS resource
     CROSS JOIN overlapping_appointments(the_crm, the_provider, resource, present, (request ->> 'until')::timestamptz) AS appointment
     WHERE NOT covered @> tstzrange(greatest(starts_at, present), ends_at)
       AND (when_empty IS NULL OR NOT (SELECT abandoned FROM occupancy(appointment, present)))
     ORDER BY starts_at, id));
END
$function$;

CREATE OR REPLACE FUNCTION public.requests_wait()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      PERFORM await_decision(NEW.crm_id, NEW.id, NULL);
      RETURN NULL;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.retry_answer(reason text)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT jsonb_build_object('retry', reason)
$function$;

CREATE OR REPLACE FUNCTION public.scheduling_now()
 RETURNS timestamp with time zone
 LANGUAGE sql
 PARALLEL SAFE
AS $function$
      SELECT clock_timestamp() + coalesce(nullif(current_setting('scheduling.clock_offset', true), ''), '0')::interval
    $function$;

CREATE OR REPLACE FUNCTION public.scheduling_now(the_crm text)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 PARALLEL SAFE
AS $function$
    BEGIN
      RETURN scheduling_now() + coalesce((SELECT make_interval(secs => ahead_ms / 1000.0) FROM sandbox_clock WHERE crm_id = the_crm), interval '0');
    END
    $function$;

CREATE OR REPLACE FUNCTION public.set_changed_at()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      NEW.changed_at := scheduling_now();
      RETURN NEW;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.set_daily_list_mark()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      IF NEW.daily_list IS NULL OR TG_OP = 'UPDATE' AND NEW.daily_list IS NOT DISTINCT FROM OLD.daily_list THEN RETURN NULL; END IF;
      INSERT INTO daily_list_mark (crm_id, provider_id, set_at)
      VALUES (NEW.crm_id, NEW.provider_id, scheduling_now(NEW.crm_id))
      ON CONFLICT (crm_id, provider_id) DO UPDATE SET set_at = excluded.set_at;
      RETURN NULL;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.set_reminder_marks()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    DECLARE
      present timestamptz := scheduling_now(NEW.crm_id);
    BEGIN
      DELETE FROM reminder_mark WHERE crm_id = NEW.crm_id AND provider_id = NEW.provider_id AND minutes <> ALL (NEW.reminders);
      INSERT INTO reminder_mark (crm_id, provider_id, minutes, until)
      SELECT DISTINCT NEW.crm_id, NEW.provider_id, length, present FROM unnest(NEW.reminders) AS length
      ON CONFLICT DO NOTHING;
      RETURN NULL;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.shown_of(appointment appointment)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT md5(jsonb_build_array(
    appointment.id, extract(epoch FROM appointment.starts_at), extract(epoch FROM appointment.ends_at), appointment.description, appointment.address, appointment.price_value,
    appointment.price_currency)::text)
$function$;

CREATE OR REPLACE FUNCTION public.slot_details(resource_reference text, appointment_reference text, product_reference text, description text, capacity bigint, seats bigint, address jsonb, price_value numeric, price_currency text)
 RETURNS TABLE(content json)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT row_to_json(fields) FROM (
    SELECT
      resource_reference AS "resourceReference",
      appointment_reference AS "appointmentReference",
      product_reference AS "productReference",
      description,
      capacity,
      seats,
      (SELECT location_json.content FROM location_json(slot_details.address)) AS address,
      (SELECT price_json.content FROM price_json(price_value, price_currency)) AS price
  ) AS fields
$function$;

CREATE OR REPLACE FUNCTION public.slot_of(appointment appointment, taken bigint, timeslot_reference text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN jsonb_build_object(
    'startsAt', epoch_ms(appointment.starts_at), 'endsAt', epoch_ms(appointment.ends_at), 'timeslotReference', timeslot_reference,
    'details', (SELECT content::text FROM appointment_slot_details(appointment, taken)));
END
$function$;

CREATE OR REPLACE FUNCTION public.store_customer(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  answer jsonb;
BEGIN
  INSERT INTO customer AS copy (crm_id, id, provider_id, reference, user_name, email, mobile, language, version, reference_known, refreshed_at)
  VALUES (
    request ->> 'crmId', (request ->> 'id')::uuid, (request ->> 'providerId')::uuid, request ->> 'reference', request ->> 'userName', request ->> 'email',
    request ->> 'mobile', request ->> 'language', (request ->> 'version')::integer, true, clock_timestamp())
  ON CONFLICT (crm_id, id) DO UPDATE
     SET (provider_id, reference, user_name, email, mobile, language, version, reference_known, refreshed_at)
       = (excluded.provider_id, excluded.reference, excluded.user_name, excluded.email, excluded.mobile, excluded.language, excluded.version, true, excluded.refreshed_at)
   WHERE copy.version <= excluded.version AND copy.required_version <= excluded.version AND copy.erased_at IS NULL;
  SELECT jsonb_build_object('version', greatest(version, required_version), 'erased', erased_at IS NOT NULL) INTO answer
    FROM customer
   WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid;
  RETURN answer;
END
$function$;

CREATE OR REPLACE FUNCTION public.store_pending_booking(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_id uuid := request ->> 'id';
  digest CONSTANT bytea := address_digest(request ->> 'email');
  present CONSTANT timestamptz := clock_timestamp();
  stored uuid;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('page mails ' || the_crm || ' ' || encode(digest, 'hex'), 0));
  stored := (
    SELECT id FROM pending_booking
     WHERE crm_id = the_crm AND address_key(email) = address_key(request ->> 'email') AND expires_at > present
       AND provider_id = (request ->> 'providerId')::uuid AND choice = (request ->> 'choice')::uuid
       AND (offer, resource_reference, starts_at, name, mobile, note) IS NOT DISTINCT FROM (
         request ->> 'offer', request ->> 'resourceReference', (request ->> 'startsAt')::timestamptz, request ->> 'name', request ->> 'mobile', request ->> 'note')
     LIMIT 1);
  IF stored IS NOT NULL THEN RETURN jsonb_build_object('id', stored); END IF;
  INSERT INTO pending_booking (
    crm_id, id, provider_id, choice, offer, description, resource_reference, starts_at, ends_at, address, price_value, price_currency, name, email, mobile, note, language,
    expires_at)
  VALUES (
    the_crm, the_id, (request ->> 'providerId')::uuid, (request ->> 'choice')::uuid, request ->> 'offer', request ->> 'description',
    request ->> 'resourceReference', (request ->> 'startsAt')::timestamptz, (request ->> 'endsAt')::timestamptz, nullif(request -> 'address', 'null'),
    (request ->> 'priceValue')::numeric, request ->> 'priceCurrency', request ->> 'name', request ->> 'email', request ->> 'mobile', request ->> 'note',
    request ->> 'language', present + make_interval(mins => (request ->> 'minutes')::integer));
  IF (SELECT count(*) FROM verification_mail WHERE crm_id = the_crm AND address_digest = digest AND sent_at > present - interval '24 hours') < 3 THEN
    INSERT INTO verification_mail (crm_id, pending_booking_id, address_digest) VALUES (the_crm, the_id, digest);
    INSERT INTO outbox (subject, data, request_id, traceparent)
    VALUES (
      'scheduling.calendar.v1.booking-verification-requested', json_build_object('crmId', the_crm, 'pendingBookingId', the_id),
      coalesce(request #>> '{origin,request_id}', gen_random_uuid()::text), request #>> '{origin,traceparent}');
  END IF;
  RETURN jsonb_build_object('id', the_id);
END
$function$;

CREATE OR REPLACE FUNCTION public.store_provider(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_id uuid := (request ->> 'id')::uuid;
  the_version integer := (request ->> 'version')::integer;
  kept_rules jsonb;
BEGIN
  UPDATE provider SET time_zone = request ->> 'timeZone', version = the_version WHERE crm_id = the_crm AND id = the_id AND version < the_version;
  PERFORM FROM provider WHERE crm_id = the_crm AND id = the_id;
  IF FOUND THEN RETURN to_jsonb(true); END IF;

  -- Nobody closes it meanwhile.
  PERFORM pg_advisory_xact_lock(hashtextextended('provider ' || the_id, 0));
  PERFORM FROM closed_provider WHERE crm_id = the_crm AND id = the_id AND version >= the_version;
  IF FOUND THEN RETURN to_jsonb(false); END IF;
  INSERT INTO provider (crm_id, id, reference, time_zone, version)
  VALUES (the_crm, the_id, request ->> 'reference', request ->> 'timeZone', the_version)
  ON CONFLICT DO NOTHING;
  DELETE FROM closed_provider WHERE crm_id = the_crm AND id = the_id RETURNING rules INTO kept_rules;
  IF kept_rules IS NOT NULL THEN INSERT INTO booking_rules SELECT * FROM jsonb_populate_record(NULL::booking_rules, kept_rules); END IF;
  RETURN to_jsonb(true);
END
$function$;

CREATE OR REPLACE FUNCTION public.sweep_reservations(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  target record;
  swept integer := 0;
BEGIN
  FOR target IN
    SELECT crm_id, id FROM appointment
     WHERE (crm_id, id) IN (
       SELECT expiration.crm_id, expiration.appointment_id FROM next_expirations((request ->> 'limit')::integer) AS expiration
        WHERE remaining <= interval '0')
       FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    swept := swept + free_expired_seats(target.crm_id, target.id, request -> 'origin');
  END LOOP;
  RETURN jsonb_build_object('swept', swept, 'nextInMs', (SELECT extract(epoch FROM min(remaining)) * 1000 FROM next_expirations(1)));
END
$function$;

CREATE OR REPLACE FUNCTION public.take_place(request jsonb, opening timeslot, target appointment, slot_start timestamp with time zone, slot_end timestamp with time zone, seats integer)
 RETURNS appointment
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF target.id IS NULL THEN
    INSERT INTO appointment (
      crm_id, provider_id, reference, resource_reference, product_reference, contact_reference, description, address, price_value, price_currency,
      starts_at, ends_at, capacity, taken, accept_bookings, buffer_before, buffer_after, content_digest, when_empty, event_count)
    VALUES (
      request ->> 'crmId', (request ->> 'providerId')::uuid, request ->> 'newReference', opening.resource_reference, request ->> 'productReference',
      request ->> 'contactReference', request ->> 'description', opening.address, (request ->> 'priceValue')::numeric, request ->> 'priceCurrency',
      slot_start, slot_end, opening.default_capacity, seats, opening.default_accept_bookings, opening.buffer_before, opening.buffer_after, decode(request ->> 'contentDigest', 'hex'), 'REMOVED', 2)
    RETURNING * INTO target;
    PERFORM append_appointment_changed(target, 'CREATED', request -> 'origin');
  ELSE
    UPDATE appointment SET taken = taken + seats, event_count = event_count + 1 WHERE crm_id = target.crm_id AND id = target.id RETURNING * INTO target;
  END IF;
  RETURN target;
END
$function$;

CREATE OR REPLACE FUNCTION public.takes_seat(state text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT state IN ('RESERVED', 'BOOKED')
$function$;

CREATE OR REPLACE FUNCTION public.timeslot_json(timeslot timeslot)
 RETURNS TABLE(content text)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT row_to_json(fields)::text FROM (
    SELECT
      timeslot.reference,
      timeslot.resource_reference AS "resourceReference",
      moment_json(timeslot.starts_at) AS start,
      moment_json(timeslot.ends_at) AS "end",
      timeslot.raster,
      timeslot.default_capacity AS "defaultCapacity",
      timeslot.default_accept_bookings AS "defaultAcceptBookings",
      (SELECT location_json.content FROM location_json(timeslot.address)) AS address,
      timeslot.buffer_before AS "bufferBefore",
      timeslot.buffer_after AS "bufferAfter",
      timeslot.state,
      timeslot.from_hours IN ('MADE', 'HIDDEN') IS TRUE AS "fromHours"
  ) AS fields
$function$;

CREATE OR REPLACE FUNCTION public.told_before(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_participation uuid := request ->> 'participationId';
  the_version integer := request ->> 'version';
  told integer := coalesce(
    (request ->> 'toldVersion')::integer,
    (SELECT max(version) FROM participation_previous WHERE crm_id = the_crm AND participation_id = the_participation AND version < the_version), 0);
BEGIN
  RETURN (
    SELECT jsonb_build_object('startsAt', previous.starts_at, 'endsAt', previous.ends_at, 'description', previous.description, 'address', previous.address)
      FROM participation_previous AS previous
      JOIN participation ON participation.crm_id = previous.crm_id AND participation.id = previous.participation_id
     WHERE previous.crm_id = the_crm AND previous.participation_id = the_participation AND previous.version > told AND previous.version <= the_version
       AND coalesce(participation.untold_version, 0) <= told
     ORDER BY previous.version
     LIMIT 1);
END
$function$;

CREATE OR REPLACE FUNCTION public.transition_error(present text, wanted text, appointment_state text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  IF wanted IN ('RESERVED', 'REQUESTED') THEN
    RETURN error_answer('participation.state_unsupported', jsonb_build_object(
      'text', format('A participation cannot be moved to %s; create a new one instead.', wanted),
      'errors', jsonb_build_array(jsonb_build_object('pointer', '/state', 'detail', format('cannot be %s in an update', wanted)))));
  END IF;
  IF is_active(wanted) AND appointment_state <> 'ACTIVE' THEN
    RETURN error_answer('appointment.cancelled', CASE present WHEN 'CANCELED' THEN jsonb_build_object('text',
      'The booking was cancelled, and its appointment with it. Neither comes back: list the slots, and book again with a new reference.') ELSE '{}' END);
  END IF;
  IF EXISTS (SELECT FROM transitions() WHERE from_state = present AND to_state = wanted) THEN RETURN NULL; END IF;
  RETURN error_answer('participation.move_not_allowed', jsonb_build_object('text', format(
    'A participation that is %s cannot become %s; allowed from here: %s.', present, wanted,
    coalesce((SELECT string_agg(to_state, ' and ' ORDER BY to_state) FROM transitions() WHERE from_state = present), 'nothing'))));
END
$function$;

CREATE OR REPLACE FUNCTION public.transitions()
 RETURNS TABLE(from_state text, to_state text, has_mail boolean)
 LANGUAGE sql
 IMMUTABLE
AS $function$
  VALUES
    ('RESERVED', 'BOOKED', true),
    ('REQUESTED', 'BOOKED', true),
    ('REQUESTED', 'CANCELED', true),
    ('BOOKED', 'CANCELED', true),
    ('RESERVED', 'CANCELED', false),
    ('DELETED', 'CANCELED', false),
    ('BOOKED', 'DELETED', false)
$function$;

CREATE OR REPLACE FUNCTION public.unavailable_answer(reason text)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT error_answer('slot.unavailable', jsonb_build_object('reason', reason, 'text', CASE reason
    WHEN 'taken' THEN 'The place is taken by another appointment.'
    WHEN 'full' THEN 'All seats of the appointment are taken.'
    WHEN 'private' THEN 'The appointment is not publicly bookable.'
    WHEN 'closed' THEN 'The slot is not offered any more.'
    WHEN 'blocked' THEN 'The resource is blocked at that time.'
    WHEN 'too_soon' THEN 'The slot begins in the past, or sooner than the minimum notice of the provider allows.'
    WHEN 'too_late' THEN 'The slot begins after the horizon of the provider.' END))
$function$;

CREATE OR REPLACE FUNCTION public.unmark_appointment()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      UPDATE appointment SET anonymised = false WHERE crm_id = NEW.crm_id AND id = NEW.appointment_id AND anonymised;
      RETURN NULL;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.unmark_with_seats()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      NEW.anonymised := false;
      RETURN NEW;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.update_appointment(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  locked record;
  reclaimed jsonb;
  target appointment%ROWTYPE;
  changed appointment%ROWTYPE;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_appointment(request, request ->> 'reference');
  reclaimed := jsonb_build_object('reclaimed', locked.reclaimed);
  target := locked.target;
  IF target.id IS NULL THEN RETURN reclaimed || error_answer('appointment.not_found'); END IF;
  IF target.state <> 'ACTIVE' THEN
    RETURN reclaimed || error_answer('appointment.cancelled', '{"text": "The appointment is cancelled and cannot be changed."}');
  END IF;
  changed := jsonb_populate_record(target, request -> 'changes');
  IF changed.ends_at <= changed.starts_at THEN
    RETURN reclaimed || error_answer('appointment.invalid', '{"errors": [{"pointer": "/end", "detail": "must be after start"}]}');
  END IF;

  IF changed IS DISTINCT FROM target THEN
    UPDATE appointment
       SET starts_at = changed.starts_at, ends_at = changed.ends_at, capacity = changed.capacity, accept_bookings = changed.accept_bookings,
           description = changed.description, contact_reference = changed.contact_reference, notes = changed.notes, address = changed.address, metadata = changed.metadata,
           revision = revision + 1, event_count = event_count + 1
     WHERE crm_id = target.crm_id AND id = target.id
    RETURNING * INTO changed;
    -- The event says the new capacity.
    target.capacity := changed.capacity;
    PERFORM append_appointment_changed(target, 'UPDATED', request -> 'origin');
    IF (changed.starts_at, changed.ends_at, changed.description, changed.address) IS DISTINCT FROM (target.starts_at, target.ends_at, target.description, target.address) THEN
      PERFORM update_participants(changed, request || jsonb_build_object('isMoved', changed.starts_at <> target.starts_at, 'previous', to_jsonb(target)));
    END IF;
  END IF;
  RETURN reclaimed || appointment_answer(changed, request);
END
$function$;

CREATE OR REPLACE FUNCTION public.update_participants(target appointment, request jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  origin jsonb := request -> 'origin' || jsonb_build_object('hasMail', (request ->> 'sendMails')::boolean, 'changeId', gen_random_uuid());
  previous appointment := jsonb_populate_record(NULL::appointment, request -> 'previous');
  number integer;
BEGIN
  WITH updated AS (
    UPDATE participation
       SET version = participation.version + 1, mail_event_id = coalesce(new_mail_event(origin), mail_event_id), invited = invited OR invites(origin, state),
           -- Whoever said so meant the previous time and place.
           attendance_confirmed_at = NULL,
           -- Nobody has missed what has not begun.
           no_show = no_show AND target.starts_at <= scheduling_now(target.crm_id),
           mailable_version = NULL,
           untold_version = CASE WHEN has_mail(origin) THEN untold_version ELSE participation.version + 1 END,
           arranged_at = CASE WHEN (request ->> 'isMoved')::boolean THEN NULL ELSE coalesce(arranged_at, changed_at) END
     WHERE crm_id = target.crm_id AND appointment_id = target.id AND state IN ('REQUESTED', 'BOOKED')
    RETURNING old AS before, new AS after),
  kept AS (
    INSERT INTO participation_previous (crm_id, participation_id, version, starts_at, ends_at, description, address)
    SELECT (after).crm_id, (after).id, (after).version, previous.starts_at, previous.ends_at, previous.description, previous.address
      FROM updated WHERE has_mail(origin))
  SELECT count(append_participation_changed(
           after, target.provider_id, 'APPOINTMENT_CHANGED', (before).state, origin, (before).mail_event_id, target.event_count + ordinal))
    INTO number
    FROM (SELECT *, row_number() OVER (ORDER BY (after).id)::integer AS ordinal FROM updated) AS changes;
  UPDATE appointment SET event_count = event_count + number WHERE crm_id = target.crm_id AND id = target.id;
END
$function$;

CREATE OR REPLACE FUNCTION public.update_participation(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  locked record;
BEGIN
  IF NOT is_present_provider(request) THEN RETURN retry_answer('provider'); END IF;
  SELECT * INTO locked FROM lock_participation(request);
  RETURN coalesce(locked.rejection, change_state(request, locked.target, locked.present, NULL)) || jsonb_build_object('reclaimed', locked.reclaimed);
END
$function$;

CREATE OR REPLACE FUNCTION public.use_of_invitation(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  the_invitation uuid := request ->> 'id';
BEGIN
  RETURN (
    SELECT jsonb_build_object('booked', anonymised + made.standing, 'isLimited', made.of_day >= 2 * bookings)
      FROM invitation CROSS JOIN (
        SELECT count(*) FILTER (WHERE participation.state IN ('REQUESTED', 'BOOKED')) AS standing,
               count(*) FILTER (WHERE uuid_extract_timestamp(participation.id) > clock_timestamp() - interval '24 hours') AS of_day
          FROM invitation_booking
          JOIN participation ON participation.crm_id = invitation_booking.crm_id AND participation.id = invitation_booking.participation_id
         WHERE invitation_booking.crm_id = the_crm AND invitation_booking.invitation_id = the_invitation) AS made
     WHERE crm_id = the_crm AND id = the_invitation);
END
$function$;

CREATE OR REPLACE FUNCTION public.write_daily_lists(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  the_crm text := request ->> 'crmId';
  written integer;
BEGIN
  WITH due AS MATERIALIZED (
    SELECT list.*
      FROM jsonb_to_recordset(request -> 'lists')
        AS list ("providerId" uuid, hour integer, "listedOn" date, date date, "dayStart" timestamptz, "dayEnd" timestamptz, "expiresAt" timestamptz)
      JOIN daily_list_mark AS mark ON mark.crm_id = the_crm AND mark.provider_id = list."providerId"
      JOIN booking_rules AS rules ON rules.crm_id = the_crm AND rules.provider_id = list."providerId"
     WHERE mark.listed_on IS NOT DISTINCT FROM list."listedOn" AND rules.daily_list = list.hour
       FOR NO KEY UPDATE OF mark SKIP LOCKED
  ), done AS (
    UPDATE daily_list_mark AS mark SET listed_on = due.date FROM due WHERE mark.crm_id = the_crm AND mark.provider_id = due."providerId"
  )
  INSERT INTO outbox (subject, data, request_id, traceparent)
  SELECT 'scheduling.calendar.v1.daily-list-due',
         json_build_object('crmId', the_crm, 'providerId', "providerId", 'date', date, 'expiresAt', moment_json("expiresAt")),
         coalesce(request #>> '{origin,request_id}', gen_random_uuid()::text), request #>> '{origin,traceparent}'
    FROM due
   WHERE EXISTS (SELECT FROM day_appointments(the_crm, "providerId", "dayStart", "dayEnd"));
  GET DIAGNOSTICS written = ROW_COUNT;
  RETURN to_jsonb(written);
END
$function$;
