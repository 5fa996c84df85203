import { type Kysely, sql } from 'kysely';

/**
 * Appointments whose participations are all anonymised are marked and leave the index, so that the retention job reads what has become due since, and not
 * the whole history every hour. The index replaces the one by end, which only that job used.
 *
 * The triggers remove the mark when a person may have been added since, whoever writes; everybody who does has locked the appointment. For a participation
 * that takes a seat, the update of the seats does it, so that a booking calls no function. Embedded participations (those with a name) are inserted with their
 * appointment, which is not marked. Those in a marked one are all anonymous; a text or a customer is added to one with a new version.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE appointment ADD COLUMN anonymised boolean NOT NULL DEFAULT false`.execute(db);
  await sql`DROP INDEX appointment_by_end`.execute(db);
  await sql`CREATE INDEX appointment_to_anonymise ON appointment (crm_id, ends_at) WHERE NOT anonymised`.execute(db);
  await sql`
    CREATE FUNCTION unmark_appointment() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE appointment SET anonymised = false WHERE crm_id = NEW.crm_id AND id = NEW.appointment_id AND anonymised;
      RETURN NULL;
    END
    $$`.execute(db);
  await sql`
    CREATE FUNCTION unmark_with_seats() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.anonymised := false;
      RETURN NEW;
    END
    $$`.execute(db);
  await sql`
    CREATE TRIGGER seats_changed BEFORE UPDATE ON appointment FOR EACH ROW WHEN (OLD.anonymised AND NEW.taken <> OLD.taken)
      EXECUTE FUNCTION unmark_with_seats()`.execute(db);
  await sql`
    CREATE TRIGGER participation_added AFTER INSERT ON participation FOR EACH ROW WHEN (NEW.name IS NULL AND NEW.state NOT IN ('BOOKED', 'RESERVED'))
      EXECUTE FUNCTION unmark_appointment()`.execute(db);
  await sql`
    CREATE TRIGGER participation_moved AFTER UPDATE ON participation FOR EACH ROW
      WHEN (NEW.appointment_id <> OLD.appointment_id OR NEW.version <> OLD.version AND NEW.reference LIKE 'anonymous-%')
      EXECUTE FUNCTION unmark_appointment()`.execute(db);
}
