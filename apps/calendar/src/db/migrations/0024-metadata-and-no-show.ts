import { type Kysely, sql } from 'kysely';

/** What CRMs note of appointments and participations, and whether a person did not come. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    ALTER TABLE appointment ADD COLUMN metadata jsonb;
    ALTER TABLE participation ADD COLUMN metadata jsonb, ADD COLUMN no_show boolean NOT NULL DEFAULT false, ADD COLUMN mailable_version integer;
    ALTER TABLE participation ADD CONSTRAINT participation_no_show_check CHECK (state = 'BOOKED' OR NOT no_show) NOT VALID;

    -- Whoever anonymises a participation, or writes to one that is anonymous: nothing is noted of nobody.
    CREATE FUNCTION forget_notes() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.metadata := NULL;
      NEW.no_show := false;
      RETURN NEW;
    END
    $$;
    CREATE TRIGGER participation_anonymised BEFORE UPDATE ON participation FOR EACH ROW
      WHEN ((NEW.metadata IS NOT NULL OR NEW.no_show) AND NEW.reference = 'anonymous-' || NEW.id::text) EXECUTE FUNCTION forget_notes()`.execute(
    db,
  );
}
