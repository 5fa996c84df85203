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
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT account_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT account_crm_id_owner_id_fkey FOREIGN KEY (crm_id, owner_id) REFERENCES app_user(crm_id, id),
  CONSTRAINT account_reference_key UNIQUE (crm_id, reference)
);
CREATE INDEX account_by_owner ON public.account USING btree (crm_id, owner_id, id);

CREATE TABLE api_key (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  prefix text NOT NULL,
  key_hash bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  scope text NOT NULL DEFAULT 'all'::text,
  CONSTRAINT api_key_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT api_key_scope_check CHECK ((scope = ANY (ARRAY['read'::text, 'book'::text, 'all'::text]))),
  CONSTRAINT api_key_crm_id_fkey FOREIGN KEY (crm_id) REFERENCES crm(crm_id),
  CONSTRAINT api_key_hash_key UNIQUE (key_hash),
  CONSTRAINT api_key_prefix_key UNIQUE (prefix)
);

CREATE TABLE app_user (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  reference text,
  email text NOT NULL,
  email_key text NOT NULL,
  email_generated boolean NOT NULL,
  email_verified_at timestamp with time zone,
  username text NOT NULL,
  username_key text NOT NULL,
  last_name text NOT NULL,
  first_name text,
  phone text,
  mobile text,
  language text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  email_derived_from text,
  CONSTRAINT app_user_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT app_user_crm_id_fkey FOREIGN KEY (crm_id) REFERENCES crm(crm_id),
  CONSTRAINT app_user_email_key UNIQUE (email_key),
  CONSTRAINT app_user_reference_key UNIQUE (crm_id, reference),
  CONSTRAINT app_user_username_key UNIQUE (username_key)
);
CREATE INDEX app_user_by_address ON public.app_user USING btree ("left"(email_key, strpos(email_key, '
'::text)), address_key(email));
CREATE INDEX app_user_by_derivation ON public.app_user USING btree (crm_id, address_key(email_derived_from)) WHERE (email_derived_from IS NOT NULL);
CREATE INDEX app_user_by_username ON public.app_user USING btree ("left"(username_key, strpos(username_key, '
'::text)), username_as_read(username));

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

CREATE TABLE crm (
  crm_id text NOT NULL,
  name text,
  language text NOT NULL DEFAULT 'de'::text,
  time_zone text NOT NULL DEFAULT 'Europe/Berlin'::text,
  sender_name text,
  sender_address text,
  notify_on_customer_deletion boolean NOT NULL DEFAULT true,
  requests_per_minute integer NOT NULL DEFAULT 6000,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  anonymise_after_days integer,
  logo_url text,
  colour text,
  imprint text,
  sandbox boolean NOT NULL DEFAULT false,
  privacy_url text,
  CONSTRAINT crm_pkey PRIMARY KEY (crm_id),
  CONSTRAINT crm_anonymise_after_days_check CHECK (((anonymise_after_days >= 1) AND (anonymise_after_days <= 36500)))
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

CREATE TABLE email_verification (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  user_id uuid NOT NULL,
  token_hash bytea,
  expires_at timestamp with time zone,
  used_at timestamp with time zone,
  requested_at timestamp with time zone[] NOT NULL DEFAULT '{}'::timestamp with time zone[],
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT email_verification_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT email_verification_crm_id_user_id_fkey FOREIGN KEY (crm_id, user_id) REFERENCES app_user(crm_id, id),
  CONSTRAINT email_verification_token_key UNIQUE (token_hash),
  CONSTRAINT email_verification_user_key UNIQUE (crm_id, user_id)
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
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT provider_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT provider_crm_id_account_id_fkey FOREIGN KEY (crm_id, account_id) REFERENCES account(crm_id, id),
  CONSTRAINT provider_crm_id_owner_id_fkey FOREIGN KEY (crm_id, owner_id) REFERENCES app_user(crm_id, id),
  CONSTRAINT provider_reference_key UNIQUE (crm_id, reference)
);
CREATE INDEX provider_by_account ON public.provider USING btree (crm_id, account_id, id);
CREATE UNIQUE INDEX provider_by_id ON public.provider USING btree (id);
CREATE INDEX provider_by_owner ON public.provider USING btree (crm_id, owner_id, id);

CREATE TABLE provider_staff (
  crm_id text NOT NULL,
  provider_id uuid NOT NULL,
  user_id uuid NOT NULL,
  added_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT provider_staff_pkey PRIMARY KEY (crm_id, provider_id, user_id),
  CONSTRAINT provider_staff_crm_id_provider_id_fkey FOREIGN KEY (crm_id, provider_id) REFERENCES provider(crm_id, id),
  CONSTRAINT provider_staff_crm_id_user_id_fkey FOREIGN KEY (crm_id, user_id) REFERENCES app_user(crm_id, id)
);
CREATE INDEX provider_staff_user ON public.provider_staff USING btree (crm_id, user_id);

CREATE TABLE verification_mailbox (
  crm_id text NOT NULL,
  address_digest bytea NOT NULL,
  requested_at timestamp with time zone[] NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT verification_mailbox_pkey PRIMARY KEY (crm_id, address_digest),
  CONSTRAINT verification_mailbox_crm_id_fkey FOREIGN KEY (crm_id) REFERENCES crm(crm_id)
);
CREATE INDEX verification_mailbox_expires_at ON public.verification_mailbox USING btree (expires_at);

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

CREATE OR REPLACE FUNCTION public.username_as_read(username text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
DECLARE
  -- Default_Ignorable_Code_Point, and others without a shape: of annotations, Khitan, hieroglyphs and music.
  invisible CONSTANT text := '[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U00013442\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]';
  -- White_Space, and the braille pattern without dots.
  space CONSTANT text := '[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000]+';
  -- Kinds of Cyrillic letters, which are in lower case already.
  unusual CONSTANT text := U&'\1C80\1C81\1C82\1C83\1C84\1C85\1C86\1C87\1C88';
  usual CONSTANT text := U&'\0432\0434\043E\0441\0442\0442\044A\0463\A64B';
  read text;
BEGIN
  -- Nearly all.
  IF username COLLATE "C" ~ '^[!-~]*$' THEN RETURN lower(username COLLATE "C"); END IF;

  read := regexp_replace(normalize(username, NFKC) COLLATE "C", invisible, '', 'g');
  read := btrim(regexp_replace(read COLLATE "C", space, ' ', 'g'));
  -- Characters that were apart may form another one, and lower case may take one apart (İ). A capital sigma has two small forms.
  read := normalize(lower(normalize(read, NFKC) COLLATE pg_unicode_fast), NFKC);
  RETURN replace(translate(read, unusual, usual), U&'\03C2', U&'\03C3');
END
$function$;
