import { type Kysely, sql } from 'kysely';

/**
 * Mails to providers. They have a table of their own until they are written: a version of the service that does not
 * know them takes no turns with it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE provider_notice (
      crm_id text NOT NULL,
      id uuid NOT NULL DEFAULT uuidv7(),
      event_id uuid NOT NULL,
      recipient text NOT NULL CHECK (recipient IN ('PROVIDER', 'CONTACT')),
      template text NOT NULL,
      about_id uuid NOT NULL,
      version integer NOT NULL,
      participation_ids uuid[] NOT NULL DEFAULT '{}',
      participation_version integer NOT NULL DEFAULT 0,
      customer_id uuid,
      provider_id uuid NOT NULL,
      actor text NOT NULL,
      request_id text NOT NULL,
      traceparent text,
      state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'listed')),
      list_id uuid,
      recipient_id uuid,
      attempts integer NOT NULL DEFAULT 0,
      failures integer NOT NULL DEFAULT 0,
      due_at timestamptz NOT NULL DEFAULT now(),
      lease uuid,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (crm_id, id),
      CONSTRAINT provider_notice_intent_key UNIQUE (crm_id, event_id, about_id, template),
      CHECK ((state = 'listed') = (list_id IS NOT NULL))
    );
    CREATE INDEX provider_notice_due ON provider_notice (crm_id, due_at) WHERE state = 'pending';
    CREATE INDEX provider_notice_order ON provider_notice (crm_id, about_id, version) WHERE state = 'pending';
    CREATE INDEX provider_notice_lease ON provider_notice (lease) WHERE state = 'pending' AND lease IS NOT NULL;
    CREATE INDEX provider_notice_customer ON provider_notice (crm_id, customer_id) WHERE customer_id IS NOT NULL;
    CREATE INDEX provider_notice_list ON provider_notice (crm_id, list_id) WHERE list_id IS NOT NULL;
    -- At most one list for a recipient and an hour waits at a time; its about_id is what they share.
    CREATE UNIQUE INDEX provider_notice_one_list ON provider_notice (crm_id, about_id) WHERE template = 'provider-list';
    CREATE INDEX provider_notice_created ON provider_notice (created_at);

    CREATE TABLE provider_mail_count (
      crm_id text NOT NULL,
      recipient_digest bytea NOT NULL,
      until timestamptz NOT NULL,
      mails integer NOT NULL,
      PRIMARY KEY (crm_id, recipient_digest, until)
    );
    CREATE INDEX provider_mail_count_until ON provider_mail_count (until);

    -- Whichever version of the service erases a person.
    CREATE FUNCTION erase_customer_from_lists() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM erase_from_lists(jsonb_build_object('crmId', NEW.crm_id, 'customerId', NEW.customer_id));
      RETURN NULL;
    END
    $$;
    CREATE TRIGGER customer_erased AFTER INSERT ON erased_customer FOR EACH ROW EXECUTE FUNCTION erase_customer_from_lists()`.execute(
    db,
  );
}
