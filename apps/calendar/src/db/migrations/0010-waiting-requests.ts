import { type Kysely, sql } from 'kysely';

/**
 * Which requests wait for a decision, and when that is to be said, to the provider and to the person (null: it was). An
 * index of participations would make every change of a state more expensive.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE waiting_request (
      crm_id text NOT NULL,
      participation_id uuid NOT NULL,
      remind_at timestamptz,
      tell_at timestamptz,
      due_at timestamptz GENERATED ALWAYS AS (least(remind_at, tell_at)) STORED,
      PRIMARY KEY (crm_id, participation_id),
      FOREIGN KEY (crm_id, participation_id) REFERENCES participation ON DELETE CASCADE
    );
    CREATE INDEX waiting_request_due ON waiting_request (due_at);
    CREATE INDEX waiting_request_of_crm ON waiting_request (crm_id, due_at);

    CREATE FUNCTION participation_waits() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM await_decision(NEW.crm_id, NEW.appointment_id, NEW.id);
      RETURN NULL;
    END
    $$;
    CREATE FUNCTION requests_wait() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM await_decision(NEW.crm_id, NEW.id, NULL);
      RETURN NULL;
    END
    $$;
    CREATE TRIGGER request_added AFTER INSERT ON participation FOR EACH ROW
      WHEN (NEW.state = 'REQUESTED' AND NEW.mail_event_id IS NOT NULL) EXECUTE FUNCTION participation_waits();
    CREATE TRIGGER request_moved AFTER UPDATE ON participation FOR EACH ROW
      WHEN (NEW.state = 'REQUESTED' AND NEW.mail_event_id IS NOT NULL
        AND (NEW.appointment_id <> OLD.appointment_id OR NEW.state <> OLD.state OR OLD.mail_event_id IS NULL))
      EXECUTE FUNCTION participation_waits();
    CREATE TRIGGER start_changed AFTER UPDATE OF starts_at ON appointment FOR EACH ROW
      WHEN (NEW.starts_at <> OLD.starts_at) EXECUTE FUNCTION requests_wait()`.execute(db);
}
