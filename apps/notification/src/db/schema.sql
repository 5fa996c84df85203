CREATE TABLE address_erasure (
  crm_id text NOT NULL,
  erasures bigint NOT NULL,
  CONSTRAINT address_erasure_pkey PRIMARY KEY (crm_id)
);

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

CREATE TABLE erased_customer (
  crm_id text NOT NULL,
  customer_id uuid NOT NULL,
  erased_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT erased_customer_pkey PRIMARY KEY (crm_id, customer_id)
);
CREATE TRIGGER customer_erased AFTER INSERT ON public.erased_customer FOR EACH ROW EXECUTE FUNCTION erase_customer_from_lists();

CREATE TABLE erased_provider (
  crm_id text NOT NULL,
  provider_id uuid NOT NULL,
  erased_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT erased_provider_pkey PRIMARY KEY (crm_id, provider_id)
);

CREATE TABLE erased_user (
  crm_id text NOT NULL,
  user_id uuid NOT NULL,
  erased_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT erased_user_pkey PRIMARY KEY (crm_id, user_id)
);

CREATE TABLE event_failure (
  consumer text NOT NULL,
  event_id uuid NOT NULL,
  failures integer NOT NULL,
  failed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT event_failure_pkey PRIMARY KEY (consumer, event_id)
);
CREATE INDEX event_failure_failed_at ON public.event_failure USING btree (failed_at);

CREATE TABLE event_organizer (
  crm_id text NOT NULL,
  participation_id uuid NOT NULL,
  address text NOT NULL,
  keep_until timestamp with time zone NOT NULL,
  provider_id uuid,
  CONSTRAINT event_organizer_pkey PRIMARY KEY (crm_id, participation_id)
);
CREATE INDEX event_organizer_keep_until ON public.event_organizer USING btree (keep_until);
CREATE INDEX event_organizer_provider ON public.event_organizer USING btree (crm_id, provider_id) WHERE (provider_id IS NOT NULL);

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
  state text NOT NULL DEFAULT 'pending'::text,
  content jsonb,
  recipient text,
  attempts integer NOT NULL DEFAULT 0,
  uncertain boolean NOT NULL DEFAULT false,
  due_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone,
  lease uuid,
  last_error text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  finished_at timestamp with time zone,
  held boolean NOT NULL DEFAULT false,
  user_id uuid,
  provider_id uuid,
  actor text,
  calendar_method text,
  resend_of uuid,
  sandbox boolean NOT NULL DEFAULT false,
  told_version integer,
  erased_at timestamp with time zone,
  CONSTRAINT mail_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT mail_check CHECK ((((state = 'pending'::text) = (content IS NOT NULL)) AND ((state = 'pending'::text) = (recipient IS NOT NULL)))),
  CONSTRAINT mail_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'sent'::text, 'failed'::text]))),
  CONSTRAINT mail_intent_key UNIQUE (crm_id, event_id, about_id, template)
);
CREATE INDEX mail_about ON public.mail USING btree (crm_id, about_id, id);
CREATE UNIQUE INDEX mail_copy ON public.mail USING btree (crm_id, resend_of) WHERE ((state = 'pending'::text) AND (resend_of IS NOT NULL));
CREATE INDEX mail_customer ON public.mail USING btree (crm_id, customer_id);
CREATE INDEX mail_due ON public.mail USING btree (crm_id, due_at) WHERE (state = 'pending'::text);
CREATE INDEX mail_erasure ON public.mail USING btree (crm_id, erasure_id) WHERE (erasure_id IS NOT NULL);
CREATE INDEX mail_finished ON public.mail USING btree (state, finished_at) WHERE (state <> 'pending'::text);
CREATE INDEX mail_held ON public.mail USING btree (crm_id, recipient, due_at) WHERE ((state = 'pending'::text) AND held);
CREATE INDEX mail_lease ON public.mail USING btree (lease) WHERE ((state = 'pending'::text) AND (lease IS NOT NULL));
CREATE INDEX mail_order ON public.mail USING btree (crm_id, about_id, version) WHERE (state = 'pending'::text);
CREATE INDEX mail_provider ON public.mail USING btree (crm_id, provider_id, id) WHERE (provider_id IS NOT NULL);
CREATE INDEX mail_user ON public.mail USING btree (crm_id, user_id) WHERE (user_id IS NOT NULL);

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

CREATE TABLE provider_mail_count (
  crm_id text NOT NULL,
  recipient_digest bytea NOT NULL,
  until timestamp with time zone NOT NULL,
  mails integer NOT NULL,
  CONSTRAINT provider_mail_count_pkey PRIMARY KEY (crm_id, recipient_digest, until)
);
CREATE INDEX provider_mail_count_until ON public.provider_mail_count USING btree (until);

CREATE TABLE provider_notice (
  crm_id text NOT NULL,
  id uuid NOT NULL DEFAULT uuidv7(),
  event_id uuid NOT NULL,
  recipient text NOT NULL,
  template text NOT NULL,
  about_id uuid NOT NULL,
  version integer NOT NULL,
  participation_ids uuid[] NOT NULL DEFAULT '{}'::uuid[],
  participation_version integer NOT NULL DEFAULT 0,
  customer_id uuid,
  provider_id uuid NOT NULL,
  actor text NOT NULL,
  request_id text NOT NULL,
  traceparent text,
  state text NOT NULL DEFAULT 'pending'::text,
  list_id uuid,
  recipient_id uuid,
  attempts integer NOT NULL DEFAULT 0,
  failures integer NOT NULL DEFAULT 0,
  due_at timestamp with time zone NOT NULL DEFAULT now(),
  lease uuid,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  day date,
  expires_at timestamp with time zone,
  requested_starts_at timestamp with time zone,
  previous_event_id uuid,
  CONSTRAINT provider_notice_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT provider_notice_check CHECK (((state = 'listed'::text) = (list_id IS NOT NULL))),
  CONSTRAINT provider_notice_recipient_check CHECK ((recipient = ANY (ARRAY['PROVIDER'::text, 'CONTACT'::text]))),
  CONSTRAINT provider_notice_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'listed'::text]))),
  CONSTRAINT provider_notice_intent_key UNIQUE (crm_id, event_id, about_id, template)
);
CREATE INDEX provider_notice_created ON public.provider_notice USING btree (created_at);
CREATE INDEX provider_notice_customer ON public.provider_notice USING btree (crm_id, customer_id) WHERE (customer_id IS NOT NULL);
CREATE INDEX provider_notice_due ON public.provider_notice USING btree (crm_id, due_at) WHERE (state = 'pending'::text);
CREATE INDEX provider_notice_lease ON public.provider_notice USING btree (lease) WHERE ((state = 'pending'::text) AND (lease IS NOT NULL));
CREATE INDEX provider_notice_list ON public.provider_notice USING btree (crm_id, list_id) WHERE (list_id IS NOT NULL);
CREATE UNIQUE INDEX provider_notice_one_list ON public.provider_notice USING btree (crm_id, about_id) WHERE (template = 'provider-list'::text);
CREATE INDEX provider_notice_order ON public.provider_notice USING btree (crm_id, about_id, version) WHERE (state = 'pending'::text);
CREATE INDEX provider_notice_provider ON public.provider_notice USING btree (crm_id, provider_id);

CREATE TABLE recent_mail (
  crm_id text NOT NULL,
  mail_id uuid NOT NULL,
  recipient_digest bytea NOT NULL,
  sent_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT recent_mail_pkey PRIMARY KEY (crm_id, mail_id),
  CONSTRAINT recent_mail_crm_id_mail_id_fkey FOREIGN KEY (crm_id, mail_id) REFERENCES mail(crm_id, id) ON DELETE CASCADE
);
CREATE INDEX recent_mail_recipient ON public.recent_mail USING btree (crm_id, recipient_digest, sent_at);

CREATE TABLE sandbox_mail (
  crm_id text NOT NULL,
  mail_id uuid NOT NULL,
  recipient text NOT NULL,
  content jsonb NOT NULL,
  sent_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT sandbox_mail_pkey PRIMARY KEY (crm_id, mail_id),
  CONSTRAINT sandbox_mail_crm_id_mail_id_fkey FOREIGN KEY (crm_id, mail_id) REFERENCES mail(crm_id, id) ON DELETE CASCADE
);
CREATE INDEX sandbox_mail_recipient ON public.sandbox_mail USING btree (crm_id, recipient, mail_id);
CREATE INDEX sandbox_mail_sent_at ON public.sandbox_mail USING btree (sent_at);

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
  state text NOT NULL DEFAULT 'pending'::text,
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamp with time zone NOT NULL DEFAULT now(),
  lease uuid,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  previous_event_id uuid,
  failures integer NOT NULL DEFAULT 0,
  starts_at timestamp with time zone,
  expires_at timestamp with time zone,
  requested_starts_at timestamp with time zone,
  CONSTRAINT unwritten_mail_pkey PRIMARY KEY (crm_id, id),
  CONSTRAINT unwritten_mail_state_check CHECK ((state = 'pending'::text)),
  CONSTRAINT unwritten_mail_intent_key UNIQUE (crm_id, event_id, about_id, template)
);
CREATE INDEX unwritten_mail_created ON public.unwritten_mail USING btree (created_at);
CREATE INDEX unwritten_mail_customer ON public.unwritten_mail USING btree (crm_id, customer_id);
CREATE INDEX unwritten_mail_due ON public.unwritten_mail USING btree (crm_id, due_at) WHERE (state = 'pending'::text);
CREATE INDEX unwritten_mail_lease ON public.unwritten_mail USING btree (lease) WHERE ((state = 'pending'::text) AND (lease IS NOT NULL));
CREATE INDEX unwritten_mail_order ON public.unwritten_mail USING btree (crm_id, about_id, version);

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

CREATE OR REPLACE FUNCTION public.erase_customer_from_lists()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    BEGIN
      PERFORM erase_from_lists(jsonb_build_object('crmId', NEW.crm_id, 'customerId', NEW.customer_id));
      RETURN NULL;
    END
    $function$;

CREATE OR REPLACE FUNCTION public.erase_from_lists(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  crm text := request ->> 'crmId';
  lists uuid[];
  days jsonb;
  erased mail%ROWTYPE;
  list uuid;
BEGIN
  -- Before the locks of rows, as in store-daily-list.sql.
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('daily lists %s', crm), 0));
  WITH removed AS (
    DELETE FROM provider_notice
     WHERE crm_id = crm AND id IN (
       SELECT id FROM provider_notice WHERE crm_id = crm AND customer_id = (request ->> 'customerId')::uuid ORDER BY id FOR UPDATE)
    RETURNING list_id, day
  )
  SELECT array_agg(DISTINCT list_id), jsonb_object_agg(list_id, day) INTO lists, days FROM removed WHERE list_id IS NOT NULL;

  FOR erased IN DELETE FROM mail WHERE crm_id = crm AND id = ANY (lists) AND state = 'pending' RETURNING old.* LOOP
    CONTINUE WHEN provider_is_erased(crm, erased.provider_id);
    IF erased.template = 'provider-day' THEN
      INSERT INTO provider_notice (crm_id, id, event_id, recipient, template, about_id, version, provider_id, actor, request_id, day, expires_at)
      VALUES (
        crm, erased.id, erased.event_id, 'PROVIDER', erased.template, erased.about_id, 0, erased.provider_id, 'service', erased.request_id,
        (days ->> erased.id::text)::date, erased.expires_at)
      ON CONFLICT ON CONSTRAINT provider_notice_intent_key DO NOTHING;
      CONTINUE;
    END IF;
    INSERT INTO provider_notice AS known (crm_id, id, event_id, recipient, template, about_id, version, provider_id, actor, request_id, recipient_id)
    SELECT crm, erased.id, erased.event_id, entry.recipient, erased.template, erased.about_id, 0, erased.provider_id, 'service', erased.request_id,
           coalesce(erased.user_id, erased.provider_id)
      FROM provider_notice AS entry WHERE entry.crm_id = crm AND entry.list_id = erased.id LIMIT 1
    ON CONFLICT (crm_id, about_id) WHERE template = 'provider-list' DO UPDATE SET due_at = known.due_at
    RETURNING id INTO list;
    UPDATE provider_notice SET list_id = list WHERE crm_id = crm AND list_id = erased.id AND list IS DISTINCT FROM erased.id;
  END LOOP;
  -- The mails themselves say nothing of a person, and that they were sent.
  DELETE FROM sandbox_mail WHERE crm_id = crm AND mail_id = ANY (lists);
  RETURN NULL;
END
$function$;

CREATE OR REPLACE FUNCTION public.is_reminder_superseded(the_crm text, participation_id uuid, its_version integer, its_expiry timestamp with time zone, its_id uuid)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
  SELECT EXISTS (
    SELECT FROM unwritten_mail
     WHERE crm_id = the_crm AND about_id = participation_id
       AND (version > its_version OR template = 'booking-reminder' AND (version, expires_at, id) > (its_version, its_expiry, its_id))
    UNION ALL
    SELECT FROM mail
     WHERE crm_id = the_crm AND about_id = participation_id AND state = 'pending' AND resend_of IS NULL
       AND (version > its_version OR template = 'booking-reminder' AND (version, expires_at, id) > (its_version, its_expiry, its_id)))
$function$;

CREATE OR REPLACE FUNCTION public.list_of_provider(entry provider_notice, recipient_id uuid, due timestamp with time zone)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
DECLARE
  new_id uuid := uuidv7();
  list uuid;
BEGIN
  INSERT INTO provider_notice AS known (crm_id, id, event_id, recipient, template, about_id, version, provider_id, actor, request_id, due_at, recipient_id)
  VALUES (
    entry.crm_id, new_id, new_id, entry.recipient, 'provider-list',
    md5(format('%s %s %s', entry.provider_id, list_of_provider.recipient_id, due))::uuid,
    0, entry.provider_id, 'service', entry.request_id, due, list_of_provider.recipient_id)
  ON CONFLICT (crm_id, about_id) WHERE template = 'provider-list' DO UPDATE SET due_at = known.due_at
  RETURNING id INTO list;
  RETURN list;
END
$function$;

CREATE OR REPLACE FUNCTION public.provider_is_erased(crm text, provider uuid)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF provider IS NULL THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('provider %s %s', crm, provider), 0));
  -- What the deletion has committed is visible to the next statement.
  RETURN EXISTS (SELECT FROM erased_provider WHERE crm_id = crm AND provider_id = provider);
END
$function$;

CREATE OR REPLACE FUNCTION public.read_quota_use(request jsonb)
 RETURNS TABLE("crmId" text, lease uuid, "toRecipient" integer, "inTotal" integer, "windowEnd" timestamp with time zone, "isSuperseded" boolean)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
DECLARE
  window_length interval := make_interval(secs => (request ->> 'windowSeconds')::float8);
  window_start timestamptz := date_bin(window_length, now(), 'epoch');
BEGIN
  RETURN QUERY
    WITH asked AS (
      SELECT "crmId" AS crm_id, id, lease, decode("recipientDigest", 'hex') AS recipient_digest
        FROM jsonb_to_recordset(request -> 'mails') AS mails ("crmId" text, id uuid, lease uuid, "recipientDigest" text)
    ), crm AS MATERIALIZED (
      SELECT crm_id, (
               SELECT count(*)::integer
                 FROM (SELECT FROM recent_mail WHERE recent_mail.crm_id = each.crm_id AND sent_at >= window_start LIMIT (request ->> 'inTotal')::integer) AS counted
             ) AS in_total
        FROM jsonb_array_elements_text(request -> 'countedCrms') AS each (crm_id)
    )
    SELECT mail.crm_id,
           mail.lease,
           (SELECT count(*)::integer
              FROM (SELECT FROM recent_mail
                     WHERE recent_mail.crm_id = mail.crm_id AND recent_mail.recipient_digest = asked.recipient_digest AND sent_at >= window_start
                     LIMIT (request ->> 'toOneRecipient')::integer) AS counted),
           in_total,
           window_start + window_length,
           EXISTS (
             SELECT FROM mail AS later
              WHERE later.crm_id = mail.crm_id AND later.about_id = mail.about_id AND later.version > mail.version
                AND later.state = 'pending' AND request -> 'urgentTemplates' ? later.template AND (mail.held OR later.lease IS NOT NULL))
             OR CASE WHEN mail.template IN ('booking-reminder', 'request-unconfirmed') AND mail.resend_of IS NULL
                  THEN is_reminder_superseded(mail.crm_id, mail.about_id, mail.version, mail.expires_at, mail.id) ELSE false END
      FROM asked
      LEFT JOIN crm USING (crm_id)
     -- One by one, whatever the plan assumes about the table.
     CROSS JOIN LATERAL (
       SELECT * FROM mail WHERE mail.crm_id = asked.crm_id AND mail.id = asked.id AND mail.lease = asked.lease AND erased_at IS NULL LIMIT 1
     ) AS mail
     WHERE NOT EXISTS (
       SELECT FROM mail AS earlier
        WHERE earlier.crm_id = mail.crm_id AND earlier.about_id = mail.about_id AND earlier.version < mail.version
          AND earlier.state = 'pending' AND earlier.lease IS NOT NULL);
END
$function$;

CREATE OR REPLACE FUNCTION public.record_sent_mail(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  sent mail%ROWTYPE;
BEGIN
  UPDATE mail
     SET state = 'sent', content = NULL, recipient = NULL, lease = NULL, held = false, attempts = attempts + 1, last_error = NULL, finished_at = now()
   WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid AND erased_at IS NULL
  RETURNING old.* INTO sent;
  IF NOT FOUND THEN RETURN 'false'; END IF;

  IF sent.sandbox AND sent.erasure_id IS NULL THEN
    INSERT INTO sandbox_mail (crm_id, mail_id, recipient, content) VALUES (sent.crm_id, sent.id, sent.recipient, sent.content);
  END IF;
  IF sent.template = 'booking-reminder' AND sent.resend_of IS NULL THEN PERFORM supersede_older_reminders(sent); END IF;
  IF request ? 'recipientDigest' THEN
    INSERT INTO recent_mail (crm_id, mail_id, recipient_digest)
    VALUES (request ->> 'crmId', (request ->> 'id')::uuid, decode(request ->> 'recipientDigest', 'hex'));
  END IF;
  RETURN 'true';
END
$function$;

CREATE OR REPLACE FUNCTION public.store_daily_list(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  crm text := request ->> 'crmId';
  list provider_notice%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(format('daily lists %s', crm), 0));
  -- Before the entries are inserted: a deletion does not see entries that are not committed.
  IF provider_is_erased(crm, (SELECT provider_id FROM provider_notice WHERE crm_id = crm AND id = (request ->> 'id')::uuid)) THEN RETURN 'false'; END IF;
  SELECT * INTO list FROM provider_notice WHERE crm_id = crm AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  IF EXISTS (
    SELECT FROM jsonb_to_recordset(request -> 'persons') AS person ("customerId" uuid)
      JOIN erased_customer AS erased ON erased.crm_id = crm AND erased.customer_id = person."customerId"
  ) THEN
    UPDATE provider_notice SET lease = NULL, due_at = now() WHERE crm_id = crm AND id = list.id;
    RETURN 'false';
  END IF;

  -- Also the entries that are left of a list that is written again.
  DELETE FROM provider_notice WHERE crm_id = crm AND (id = list.id OR list_id = list.id);
  -- The event was repeated while the list was being stored.
  IF NOT request ? 'mail' OR EXISTS (
    SELECT FROM mail WHERE crm_id = crm AND event_id = list.event_id AND about_id = list.about_id AND template = list.template
  ) THEN RETURN 'true'; END IF;
  INSERT INTO provider_notice (crm_id, event_id, recipient, template, about_id, version, participation_ids, customer_id, provider_id, actor, request_id, state, list_id, day)
  SELECT crm, list.event_id, list.recipient, list.template, "participationId", 0, ARRAY["participationId"], "customerId", list.provider_id, list.actor, list.request_id,
         'listed', list.id, list.day
    FROM jsonb_to_recordset(request -> 'persons') AS person ("customerId" uuid, "participationId" uuid);
  PERFORM store_mail(request -> 'mail');
  RETURN 'true';
END
$function$;

CREATE OR REPLACE FUNCTION public.store_daily_notice(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF provider_is_erased(request ->> 'crmId', (request ->> 'providerId')::uuid) THEN RETURN NULL; END IF;
  IF EXISTS (
    SELECT FROM mail
     WHERE crm_id = request ->> 'crmId' AND event_id = (request ->> 'eventId')::uuid AND about_id = (request ->> 'aboutId')::uuid AND template = 'provider-day'
  ) THEN RETURN NULL; END IF;

  INSERT INTO provider_notice (crm_id, event_id, recipient, template, about_id, version, provider_id, actor, day, expires_at, request_id, traceparent)
  VALUES (
    request ->> 'crmId', (request ->> 'eventId')::uuid, 'PROVIDER', 'provider-day', (request ->> 'aboutId')::uuid, 0, (request ->> 'providerId')::uuid, 'service',
    (request ->> 'day')::date, (request ->> 'expiresAt')::timestamptz, request ->> 'requestId', request ->> 'traceparent')
  ON CONFLICT ON CONSTRAINT provider_notice_intent_key DO NOTHING;
  RETURN NULL;
END
$function$;

CREATE OR REPLACE FUNCTION public.store_mail(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  new_id uuid;
BEGIN
  IF request ? 'customerId' AND NOT request ? 'erasureId' THEN
    -- The erasure takes the same lock (lock-customer.ts). What it has committed is visible to the next statement.
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
    IF EXISTS (SELECT FROM erased_customer WHERE crm_id = request ->> 'crmId' AND customer_id = (request ->> 'customerId')::uuid) THEN RETURN NULL; END IF;
  END IF;
  IF request ? 'userId' THEN
    -- As above (erase-user.ts).
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('user %s %s', request ->> 'crmId', request ->> 'userId'), 0));
    IF EXISTS (SELECT FROM erased_user WHERE crm_id = request ->> 'crmId' AND user_id = (request ->> 'userId')::uuid) THEN RETURN NULL; END IF;
  END IF;
  -- The last mail to an erased customer is sent all the same (record-outcome.ts).
  IF NOT request ? 'erasureId' THEN
    IF provider_is_erased(request ->> 'crmId', (request ->> 'providerId')::uuid) THEN RETURN NULL; END IF;
  END IF;

  INSERT INTO mail (id, created_at, crm_id, event_id, about_id, version, template, customer_id, user_id, provider_id, erasure_id, actor, calendar_method, told_version, resend_of,
    sandbox, expires_at, request_id, traceparent, content, recipient)
  VALUES (
    coalesce((request ->> 'id')::uuid, uuidv7()), coalesce((request ->> 'createdAt')::timestamptz, now()),
    request ->> 'crmId', (request ->> 'eventId')::uuid, (request ->> 'aboutId')::uuid, (request ->> 'version')::int, request ->> 'template',
    (request ->> 'customerId')::uuid, (request ->> 'userId')::uuid, (request ->> 'providerId')::uuid, (request ->> 'erasureId')::uuid,
    request ->> 'actor', request ->> 'calendarMethod', (request ->> 'toldVersion')::int, (request ->> 'resendOf')::uuid,
    coalesce((request ->> 'sandbox')::boolean, false), (request ->> 'expiresAt')::timestamptz, request ->> 'requestId', request ->> 'traceparent', request -> 'content', address_key(request #>> '{content,to,address}'))
  ON CONFLICT ON CONSTRAINT mail_intent_key DO NOTHING
  RETURNING id INTO new_id;

  IF new_id IS NOT NULL AND request ? 'organizer' THEN
    INSERT INTO event_organizer AS known (crm_id, participation_id, provider_id, address, keep_until)
    VALUES (
      request ->> 'crmId', (request ->> 'aboutId')::uuid, (request ->> 'providerId')::uuid, request #>> '{organizer,address}',
      greatest(now(), (request #>> '{organizer,eventEnd}')::timestamptz) + interval '30 days')
    ON CONFLICT (crm_id, participation_id) DO UPDATE
       SET keep_until = greatest(known.keep_until, excluded.keep_until), provider_id = coalesce(known.provider_id, excluded.provider_id)
     WHERE known.keep_until < excluded.keep_until OR known.provider_id IS NULL;
  END IF;
  IF new_id IS NOT NULL AND request ? 'maxWaiting' THEN
    WITH waiting AS (
      SELECT id, row_number() OVER (ORDER BY version) AS place, row_number() OVER (ORDER BY version DESC) AS newest
        FROM mail
       WHERE crm_id = request ->> 'crmId' AND about_id = (request ->> 'aboutId')::uuid AND state = 'pending'
         AND NOT request -> 'urgentTemplates' ? template
    ), superseded AS (
      SELECT id FROM mail
       WHERE crm_id = request ->> 'crmId' AND state = 'pending' AND lease IS NULL
         AND id IN (SELECT id FROM waiting WHERE place > 1 AND newest >= (request ->> 'maxWaiting')::int)
         FOR UPDATE SKIP LOCKED
    )
    UPDATE mail SET state = 'failed', content = NULL, recipient = NULL, held = false, last_error = 'superseded', finished_at = now()
      FROM superseded
     WHERE mail.crm_id = request ->> 'crmId' AND mail.id = superseded.id;
  END IF;
  RETURN to_jsonb(new_id);
END
$function$;

CREATE OR REPLACE FUNCTION public.store_mails_of_change(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF request ? 'mail' THEN PERFORM store_unwritten_mail(request -> 'mail'); END IF;
  PERFORM store_provider_notice(notice) FROM jsonb_array_elements(request -> 'providerNotices') AS each (notice);
  RETURN NULL;
END
$function$;

CREATE OR REPLACE FUNCTION public.store_provider_list(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  crm text := request ->> 'crmId';
  list uuid := (request ->> 'id')::uuid;
  present_ids uuid[];
BEGIN
  IF provider_is_erased(crm, (SELECT provider_id FROM provider_notice WHERE crm_id = crm AND id = list)) THEN RETURN 'false'; END IF;
  -- Who adds an entry holds a lock on this row, who removes one a lock on that entry.
  PERFORM FROM provider_notice WHERE crm_id = crm AND id = list AND lease = (request ->> 'lease')::uuid FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  SELECT array_agg(id) INTO present_ids FROM (SELECT id FROM provider_notice WHERE crm_id = crm AND list_id = list ORDER BY id FOR SHARE) AS entry;
  IF present_ids IS DISTINCT FROM (SELECT array_agg(id::uuid ORDER BY id::uuid) FROM jsonb_array_elements_text(request -> 'entryIds') AS given (id)) THEN
    UPDATE provider_notice SET lease = NULL, due_at = now() WHERE crm_id = crm AND id = list;
    RETURN 'false';
  END IF;
  DELETE FROM provider_notice WHERE crm_id = crm AND id = list;
  IF request ? 'mail' THEN PERFORM store_mail(request -> 'mail'); END IF;
  RETURN 'true';
END
$function$;

CREATE OR REPLACE FUNCTION public.store_provider_mail(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  crm text := request ->> 'crmId';
  quota integer := (request ->> 'quota')::integer;
  window_length interval := make_interval(secs => (request ->> 'windowSeconds')::float8);
  window_end timestamptz := date_bin(window_length, now(), 'epoch') + window_length;
  notice provider_notice%ROWTYPE;
  sent_this_hour integer;
  list uuid;
BEGIN
  -- Before the lock of the row, as an erasure does.
  IF request ? 'customerId' THEN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', crm, request ->> 'customerId'), 0));
  END IF;
  IF provider_is_erased(crm, (SELECT provider_id FROM provider_notice WHERE crm_id = crm AND id = (request ->> 'id')::uuid)) THEN RETURN 'false'; END IF;
  SELECT * INTO notice FROM provider_notice WHERE crm_id = crm AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;

  -- Whoever does not know the list of a day has nothing to say: another version of the service writes it (store-daily-list.sql).
  IF notice.template = 'provider-day' THEN
    UPDATE provider_notice SET lease = NULL, due_at = now() + interval '1 second' WHERE crm_id = crm AND id = notice.id;
    RETURN 'false';
  END IF;

  IF request ? 'mail' AND quota > 0 THEN
    INSERT INTO provider_mail_count AS known (crm_id, recipient_digest, until, mails)
    VALUES (crm, decode(request ->> 'recipientDigest', 'hex'), window_end, 1)
    ON CONFLICT (crm_id, recipient_digest, until) DO UPDATE SET mails = known.mails + 1
    RETURNING mails INTO sent_this_hour;
    IF sent_this_hour > quota THEN
      list := list_of_provider(notice, (request ->> 'recipientId')::uuid, window_end);
      UPDATE provider_notice SET state = 'listed', list_id = list, lease = NULL WHERE crm_id = crm AND id = notice.id;
      RETURN 'true';
    END IF;
  END IF;

  DELETE FROM provider_notice WHERE crm_id = crm AND id = notice.id;
  IF request ? 'mail' THEN PERFORM store_mail(request -> 'mail'); END IF;
  RETURN 'true';
END
$function$;

CREATE OR REPLACE FUNCTION public.store_provider_notice(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  stored_id uuid;
BEGIN
  IF request ? 'customerId' THEN
    -- As in store-mail.sql.
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
    IF EXISTS (SELECT FROM erased_customer WHERE crm_id = request ->> 'crmId' AND customer_id = (request ->> 'customerId')::uuid) THEN RETURN NULL; END IF;
  END IF;
  IF provider_is_erased(request ->> 'crmId', (request ->> 'providerId')::uuid) THEN RETURN NULL; END IF;
  INSERT INTO provider_notice AS known (crm_id, event_id, recipient, template, about_id, version, participation_ids, participation_version, customer_id, provider_id, actor, request_id, traceparent,
    previous_event_id, requested_starts_at)
  VALUES (
    request ->> 'crmId', (request ->> 'eventId')::uuid, request ->> 'recipient', request ->> 'template', (request ->> 'aboutId')::uuid, (request ->> 'version')::int,
    ARRAY[(request ->> 'participationId')::uuid], (request ->> 'participationVersion')::int, (request ->> 'customerId')::uuid, (request ->> 'providerId')::uuid, request ->> 'actor', request ->> 'requestId',
    request ->> 'traceparent', (request ->> 'previousEventId')::uuid, (request ->> 'requestedStartsAt')::timestamptz)
  -- Another participation of the appointment, if the first one is gone when the mail is written.
  ON CONFLICT ON CONSTRAINT provider_notice_intent_key DO UPDATE SET participation_ids = known.participation_ids || excluded.participation_ids
   WHERE cardinality(known.participation_ids) < 10 AND NOT known.participation_ids @> excluded.participation_ids
  RETURNING id INTO stored_id;
  -- Only now, as in store-unwritten-mail.sql.
  DELETE FROM provider_notice
   WHERE crm_id = request ->> 'crmId' AND id = stored_id AND EXISTS (
     SELECT FROM mail
      WHERE crm_id = request ->> 'crmId' AND event_id = (request ->> 'eventId')::uuid AND about_id = (request ->> 'aboutId')::uuid AND template = request ->> 'template');
  RETURN NULL;
END
$function$;

CREATE OR REPLACE FUNCTION public.store_unwritten_mail(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  new_id uuid;
  -- Whether the first one is written already, and waits to be sent.
  first_is_written boolean;
BEGIN
  -- As in store-mail.sql.
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
  IF EXISTS (SELECT FROM erased_customer WHERE crm_id = request ->> 'crmId' AND customer_id = (request ->> 'customerId')::uuid) THEN RETURN NULL; END IF;
  IF provider_is_erased(request ->> 'crmId', (request ->> 'providerId')::uuid) THEN RETURN NULL; END IF;

  INSERT INTO unwritten_mail (crm_id, event_id, about_id, version, template, customer_id, provider_id, actor, calendar_method, request_id, traceparent, previous_event_id, starts_at,
    requested_starts_at, expires_at)
  VALUES (
    request ->> 'crmId', (request ->> 'eventId')::uuid, (request ->> 'aboutId')::uuid, (request ->> 'version')::int, request ->> 'template',
    (request ->> 'customerId')::uuid, (request ->> 'providerId')::uuid, request ->> 'actor', request ->> 'calendarMethod', request ->> 'requestId', request ->> 'traceparent',
    (request ->> 'previousEventId')::uuid, (request ->> 'startsAt')::timestamptz,
    (request ->> 'requestedStartsAt')::timestamptz, (request ->> 'expiresAt')::timestamptz)
  ON CONFLICT ON CONSTRAINT unwritten_mail_intent_key DO NOTHING
  RETURNING id INTO new_id;
  IF new_id IS NULL THEN RETURN NULL; END IF;
  -- Only now: the insertion has waited for whoever was replacing the row of a repeated event by its mail, to which a second row would be something later.
  IF EXISTS (
    SELECT FROM mail
     WHERE crm_id = request ->> 'crmId' AND event_id = (request ->> 'eventId')::uuid AND about_id = (request ->> 'aboutId')::uuid AND template = request ->> 'template'
  ) THEN
    DELETE FROM unwritten_mail WHERE crm_id = request ->> 'crmId' AND id = new_id;
    RETURN NULL;
  END IF;

  first_is_written := EXISTS (
    SELECT FROM mail
     WHERE crm_id = request ->> 'crmId' AND about_id = (request ->> 'aboutId')::uuid AND state = 'pending' AND NOT request -> 'urgentTemplates' ? template
  );
  PERFORM supersede_unwritten_mails(request ->> 'crmId', ids) FROM (
    SELECT array_agg(id) AS ids FROM (
      SELECT id FROM unwritten_mail
       WHERE crm_id = request ->> 'crmId' AND lease IS NULL AND id IN (
         SELECT id FROM (
           SELECT id, row_number() OVER (ORDER BY version) AS place, row_number() OVER (ORDER BY version DESC) AS newest
             FROM unwritten_mail
            WHERE crm_id = request ->> 'crmId' AND about_id = (request ->> 'aboutId')::uuid AND NOT request -> 'urgentTemplates' ? template
         ) AS waiting
         WHERE (place > 1 OR first_is_written) AND newest >= (request ->> 'maxWaiting')::int
       )
         FOR UPDATE SKIP LOCKED
    ) AS locked
  ) AS superseded
  WHERE ids IS NOT NULL;
  RETURN NULL;
END
$function$;

CREATE OR REPLACE FUNCTION public.store_written_mail(request jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
BEGIN
  -- Before the lock of the row, as an erasure does.
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(format('customer %s %s', request ->> 'crmId', request ->> 'customerId'), 0));
  PERFORM FROM unwritten_mail WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid AND lease = (request ->> 'lease')::uuid FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  IF request ? 'content' AND EXISTS (
    SELECT FROM mail AS later
     WHERE later.crm_id = request ->> 'crmId' AND later.about_id = (request ->> 'aboutId')::uuid AND later.version > (request ->> 'version')::int
       AND later.last_error IS DISTINCT FROM 'superseded'
  ) OR request ->> 'template' IN ('booking-reminder', 'request-unconfirmed') AND is_reminder_superseded(
    request ->> 'crmId', (request ->> 'aboutId')::uuid, (request ->> 'version')::int, (request ->> 'expiresAt')::timestamptz, (request ->> 'id')::uuid
  ) THEN
    PERFORM supersede_unwritten_mails(request ->> 'crmId', ARRAY[(request ->> 'id')::uuid]);
    RETURN 'true';
  END IF;
  DELETE FROM unwritten_mail WHERE crm_id = request ->> 'crmId' AND id = (request ->> 'id')::uuid;
  IF NOT request ? 'content' THEN RETURN 'true'; END IF;

  PERFORM store_mail(request);
  IF request -> 'urgentTemplates' ? (request ->> 'template') THEN
    PERFORM supersede_unwritten_mails(request ->> 'crmId', array_agg(id)) FROM unwritten_mail
     WHERE crm_id = request ->> 'crmId' AND about_id = (request ->> 'aboutId')::uuid AND version < (request ->> 'version')::int
    HAVING count(*) > 0;
  END IF;
  RETURN 'true';
END
$function$;

CREATE OR REPLACE FUNCTION public.supersede_older_reminders(sent mail)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM supersede_unwritten_mails(sent.crm_id, array_agg(id)) FROM unwritten_mail
   WHERE crm_id = sent.crm_id AND about_id = sent.about_id AND template = 'booking-reminder' AND (version, expires_at, id) < (sent.version, sent.expires_at, sent.id)
  HAVING count(*) > 0;
  UPDATE mail SET state = 'failed', content = NULL, recipient = NULL, lease = NULL, held = false, last_error = 'superseded', finished_at = now()
   WHERE crm_id = sent.crm_id AND about_id = sent.about_id AND template = 'booking-reminder' AND state = 'pending' AND resend_of IS NULL
     AND (version, expires_at, id) < (sent.version, sent.expires_at, sent.id);
END
$function$;

CREATE OR REPLACE FUNCTION public.supersede_unwritten_mails(crm text, ids uuid[])
 RETURNS void
 LANGUAGE sql
AS $function$
  WITH superseded AS (
    DELETE FROM unwritten_mail WHERE crm_id = crm AND id = ANY (ids) RETURNING *
  )
  INSERT INTO mail (crm_id, id, event_id, about_id, version, template, customer_id, provider_id, actor, calendar_method, request_id, traceparent, created_at,
    state, last_error, finished_at)
  SELECT crm_id, id, event_id, about_id, version, template, customer_id, provider_id, actor, calendar_method, request_id, traceparent, created_at,
    'failed', 'superseded', now()
    FROM superseded
   WHERE NOT provider_is_erased(crm_id, provider_id)
  ON CONFLICT ON CONSTRAINT mail_intent_key DO NOTHING
$function$;
