import { type Kysely, sql } from 'kysely';

/** Up to which time reminders of a provider have been written, for each of the lengths in its rules. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE reminder_mark (
      crm_id text NOT NULL,
      provider_id uuid NOT NULL,
      minutes integer NOT NULL,
      until timestamptz NOT NULL,
      PRIMARY KEY (crm_id, provider_id, minutes),
      FOREIGN KEY (crm_id, provider_id) REFERENCES booking_rules ON DELETE CASCADE
    );

    -- A new length begins at the present time, and one that is gone has no mark any more, whoever writes the rules.
    CREATE FUNCTION set_reminder_marks() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      present timestamptz := scheduling_now(NEW.crm_id);
    BEGIN
      DELETE FROM reminder_mark WHERE crm_id = NEW.crm_id AND provider_id = NEW.provider_id AND minutes <> ALL (NEW.reminders);
      INSERT INTO reminder_mark (crm_id, provider_id, minutes, until)
      SELECT DISTINCT NEW.crm_id, NEW.provider_id, length, present FROM unnest(NEW.reminders) AS length
      ON CONFLICT DO NOTHING;
      RETURN NULL;
    END
    $$;
    CREATE TRIGGER reminders_set AFTER INSERT OR UPDATE OF reminders ON booking_rules FOR EACH ROW EXECUTE FUNCTION set_reminder_marks();

    INSERT INTO reminder_mark (crm_id, provider_id, minutes, until)
    SELECT DISTINCT crm_id, provider_id, length, now()
      FROM booking_rules CROSS JOIN unnest(reminders) AS length;

    -- The real time at which the clock was set to where it is.
    ALTER TABLE sandbox_clock ADD COLUMN set_at timestamptz NOT NULL DEFAULT now()`.execute(db);
}
