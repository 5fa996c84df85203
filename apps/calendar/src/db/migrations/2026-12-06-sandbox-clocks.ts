import { type Kysely, sql } from 'kysely';

/** Milliseconds, because the length of a day depends on the session's time zone. A CRM without a row has the time of the database. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE TABLE sandbox_clock (crm_id text PRIMARY KEY, ahead_ms bigint NOT NULL)`.execute(db);
  await sql`
    CREATE FUNCTION scheduling_now(the_crm text) RETURNS timestamptz LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
    BEGIN
      RETURN scheduling_now() + coalesce((SELECT make_interval(secs => ahead_ms / 1000.0) FROM sandbox_clock WHERE crm_id = the_crm), interval '0');
    END
    $$`.execute(db);
}
