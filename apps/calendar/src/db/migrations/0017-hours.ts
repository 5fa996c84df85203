import { type Kysely, sql } from 'kysely';

/** When resources are open, and which timeslots were made from that. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE resource_hours (
      crm_id text NOT NULL,
      provider_id uuid NOT NULL,
      resource_reference text NOT NULL,
      content jsonb NOT NULL,
      -- Another one each time that they are set.
      revision uuid NOT NULL,
      -- The zone in which timeslots have been made (empty: they are to be made anew), and the days for which that was done last.
      time_zone text NOT NULL,
      made_from date NOT NULL,
      made_until date NOT NULL,
      -- When there is more to make, by the real time.
      due_at timestamptz NOT NULL,
      PRIMARY KEY (crm_id, provider_id, resource_reference),
      FOREIGN KEY (crm_id, provider_id) REFERENCES provider
    );
    CREATE INDEX resource_hours_due ON resource_hours (due_at);

    -- Null: the CRM created it. MADE from hours; HIDDEN, because they do not have it any more and it has appointments; CHANGED by the CRM, whose it is since.
    ALTER TABLE timeslot ADD COLUMN from_hours text;
    ALTER TABLE timeslot ADD CONSTRAINT timeslot_from_hours_check CHECK (from_hours IN ('MADE', 'HIDDEN', 'CHANGED')) NOT VALID`.execute(
    db,
  );
}
