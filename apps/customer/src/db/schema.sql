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

CREATE TABLE closed_provider (
  crm_id text NOT NULL,
  provider_id uuid NOT NULL,
  version integer NOT NULL,
  closed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT closed_provider_pkey PRIMARY KEY (crm_id, provider_id)
);
CREATE INDEX closed_provider_closed_at ON public.closed_provider USING btree (closed_at);

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
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  provisional_until timestamp with time zone,
  prepared_by text,
  metadata jsonb,
  CONSTRAINT customer_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT customer_reference_key UNIQUE (crm_id, provider_reference, reference)
);
CREATE INDEX customer_by_address_and_id ON public.customer USING btree (crm_id, address_key(email), provider_id, id) WHERE (email IS NOT NULL);
CREATE INDEX customer_by_metadata ON public.customer USING gin (jsonb_set('{}'::jsonb, ARRAY[(provider_id)::text], metadata) jsonb_path_ops) WITH (fastupdate=off) WHERE (metadata IS NOT NULL);
CREATE INDEX customer_provider ON public.customer USING btree (crm_id, provider_id, id);
CREATE INDEX customer_to_decide ON public.customer USING btree (provisional_until) WHERE (provisional_until IS NOT NULL);
CREATE TRIGGER customer_added BEFORE INSERT ON public.customer FOR EACH ROW EXECUTE FUNCTION require_open_provider();

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

CREATE TABLE erasure (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  customer_id uuid NOT NULL,
  state text NOT NULL DEFAULT 'checking'::text,
  ignore_future_appointments boolean NOT NULL,
  notice bytea,
  requested_at timestamp with time zone NOT NULL DEFAULT now(),
  published_at timestamp with time zone NOT NULL DEFAULT now(),
  completed_at timestamp with time zone,
  subject text NOT NULL DEFAULT 'customer'::text,
  address text,
  requested_by text,
  CONSTRAINT erasure_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT erasure_state_check CHECK ((state = ANY (ARRAY['checking'::text, 'requested'::text, 'complete'::text]))),
  CONSTRAINT erasure_subject_check CHECK ((subject = ANY (ARRAY['customer'::text, 'participation'::text, 'address'::text]))),
  CONSTRAINT erasure_customer_key UNIQUE (crm_id, customer_id)
);
CREATE UNIQUE INDEX erasure_address ON public.erasure USING btree (crm_id, lower((NORMALIZE(address) COLLATE pg_c_utf8))) WHERE ((state = 'checking'::text) AND (address IS NOT NULL));
CREATE INDEX erasure_completed ON public.erasure USING btree (completed_at) WHERE (state = 'complete'::text);
CREATE INDEX erasure_notice ON public.erasure USING btree (requested_at) WHERE (notice IS NOT NULL);
CREATE INDEX erasure_open ON public.erasure USING btree (published_at) WHERE (state <> 'complete'::text);
CREATE INDEX erasure_to_finish ON public.erasure USING btree (crm_id, published_at) WHERE (state = 'checking'::text);

CREATE TABLE erasure_confirmation (
  crm_id text NOT NULL,
  erasure_id uuid NOT NULL,
  service text NOT NULL,
  confirmed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT erasure_confirmation_pkey PRIMARY KEY (crm_id, erasure_id, service)
);

CREATE TABLE erasure_part (
  crm_id text NOT NULL,
  erasure_id uuid NOT NULL,
  part_id uuid NOT NULL,
  CONSTRAINT erasure_part_pkey PRIMARY KEY (crm_id, erasure_id, part_id),
  CONSTRAINT erasure_part_crm_id_erasure_id_fkey FOREIGN KEY (crm_id, erasure_id) REFERENCES erasure(crm_id, id),
  CONSTRAINT erasure_part_crm_id_part_id_fkey FOREIGN KEY (crm_id, part_id) REFERENCES erasure(crm_id, id)
);
CREATE INDEX erasure_part_of ON public.erasure_part USING btree (crm_id, part_id);

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

CREATE OR REPLACE FUNCTION public.create_customer(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  event jsonb := request -> 'event';
  other customer%ROWTYPE;
BEGIN
  LOOP
    INSERT INTO customer (crm_id, id, provider_id, provider_reference, reference, user_name, email, mobile, note, language, metadata)
    VALUES (
      request ->> 'crmId', (request ->> 'id')::uuid, (request ->> 'providerId')::uuid, request ->> 'providerReference', request ->> 'reference',
      request ->> 'userName', request ->> 'email', request ->> 'mobile', request ->> 'note', request ->> 'language',
      nullif(request -> 'metadata', 'null'))
    ON CONFLICT ON CONSTRAINT customer_reference_key DO NOTHING;
    EXIT WHEN FOUND;
    SELECT * INTO other FROM customer
     WHERE crm_id = request ->> 'crmId' AND provider_reference = request ->> 'providerReference' AND reference = request ->> 'reference';
    -- It may have been deleted since.
    CONTINUE WHEN NOT FOUND;
    IF other.provisional_until IS NOT NULL THEN RETURN jsonb_build_object('provisionalId', other.id); END IF;
    RETURN jsonb_build_object('id', other.id, 'created', false);
  END LOOP;

  INSERT INTO outbox (subject, data, request_id, traceparent)
  VALUES (event ->> 'subject', event -> 'data', event ->> 'request_id', event ->> 'traceparent');
  RETURN jsonb_build_object('id', request ->> 'id', 'created', true);
END
$function$;

CREATE OR REPLACE FUNCTION public.get_customer(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  person customer%ROWTYPE;
BEGIN
  IF request ? 'id' THEN
    SELECT * INTO person FROM customer WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid;
  ELSE
    SELECT * INTO person FROM customer
     WHERE crm_id = request ->> 'crmId' AND provider_reference = request ->> 'providerReference' AND reference = request ->> 'customerReference';
  END IF;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF person.provisional_until IS NOT NULL THEN
    RETURN CASE WHEN (request ->> 'withProvisional')::boolean THEN jsonb_build_object('provisionalId', person.id) END;
  END IF;
  RETURN jsonb_build_object(
    'crmId', person.crm_id, 'id', person.id, 'providerId', person.provider_id, 'providerReference', person.provider_reference,
    'reference', person.reference, 'userName', person.user_name, 'email', person.email, 'mobile', person.mobile, 'note', person.note,
    'language', person.language, 'metadata', person.metadata, 'version', person.version);
END
$function$;

CREATE OR REPLACE FUNCTION public.require_open_provider()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(hashtextextended('provider ' || NEW.provider_id, 0));
      PERFORM FROM closed_provider WHERE crm_id = NEW.crm_id AND provider_id = NEW.provider_id;
      IF FOUND THEN
        RAISE EXCEPTION 'the provider is closed' USING ERRCODE = 'check_violation', CONSTRAINT = 'customer_provider_open';
      END IF;
      RETURN NEW;
    END
    $function$;
