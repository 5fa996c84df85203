import { type Kysely, sql } from 'kysely';

/** At which hour a provider gets the list of the day, since when, and which it got last. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE booking_rules ADD COLUMN daily_list integer CHECK (daily_list BETWEEN 0 AND 23);

    CREATE TABLE daily_list_mark (
      crm_id text NOT NULL,
      provider_id uuid NOT NULL,
      set_at timestamptz NOT NULL,
      listed_on date,
      PRIMARY KEY (crm_id, provider_id),
      FOREIGN KEY (crm_id, provider_id) REFERENCES booking_rules ON DELETE CASCADE
    );

    -- Another hour begins at the present time, whoever writes the rules. The mark stays when there is none any more: no day has two lists.
    CREATE FUNCTION set_daily_list_mark() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.daily_list IS NULL OR TG_OP = 'UPDATE' AND NEW.daily_list IS NOT DISTINCT FROM OLD.daily_list THEN RETURN NULL; END IF;
      INSERT INTO daily_list_mark (crm_id, provider_id, set_at)
      VALUES (NEW.crm_id, NEW.provider_id, scheduling_now(NEW.crm_id))
      ON CONFLICT (crm_id, provider_id) DO UPDATE SET set_at = excluded.set_at;
      RETURN NULL;
    END
    $$;
    CREATE TRIGGER daily_list_set AFTER INSERT OR UPDATE OF daily_list ON booking_rules FOR EACH ROW EXECUTE FUNCTION set_daily_list_mark()`.execute(
    db,
  );
}
