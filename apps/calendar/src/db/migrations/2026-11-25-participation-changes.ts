import { type Kysely, sql } from 'kysely';

/**
 * When a participation was created or last changed. Postgres evaluates `now()` once, for all rows that exist, and does not rewrite the table: they count
 * as changed during the upgrade, so that whoever asks for the changes since an earlier time gets too many of them rather than too few. It would rewrite
 * the table for `scheduling_now()`, which therefore becomes the default afterwards. Neither the default nor the trigger depends on the version of the
 * service that writes. There is no index, so that an update need not write one.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE participation ADD COLUMN changed_at timestamptz NOT NULL DEFAULT now()`.execute(db);
  await sql`ALTER TABLE participation ALTER COLUMN changed_at SET DEFAULT scheduling_now()`.execute(db);
  await sql`
    CREATE FUNCTION set_changed_at() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.changed_at := scheduling_now();
      RETURN NEW;
    END
    $$`.execute(db);
  await sql`CREATE TRIGGER participation_changed BEFORE UPDATE ON participation FOR EACH ROW EXECUTE FUNCTION set_changed_at()`.execute(
    db,
  );
}
