import { type Kysely, sql } from 'kysely';

/** When resources are blocked, and what distance bookings keep. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE resource_block (
      crm_id text NOT NULL,
      id uuid NOT NULL,
      provider_id uuid NOT NULL,
      reference text NOT NULL,
      resource_reference text NOT NULL,
      starts_at timestamptz NOT NULL,
      ends_at timestamptz NOT NULL,
      note text,
      PRIMARY KEY (crm_id, id),
      CONSTRAINT resource_block_reference_key UNIQUE (crm_id, reference),
      CHECK (starts_at < ends_at),
      FOREIGN KEY (crm_id, provider_id) REFERENCES provider
    );
    CREATE INDEX resource_block_by_start ON resource_block (crm_id, provider_id, resource_reference, starts_at, id, ends_at);
    CREATE INDEX resource_block_long ON resource_block (crm_id, provider_id, resource_reference, ends_at)
     WHERE ends_at - starts_at > interval '24 hours';
    -- How many are not over.
    CREATE INDEX resource_block_by_end ON resource_block (crm_id, provider_id, resource_reference, ends_at);

    -- In minutes, of the appointments that bookings make in a timeslot.
    ALTER TABLE timeslot ADD COLUMN buffer_before integer NOT NULL DEFAULT 0, ADD COLUMN buffer_after integer NOT NULL DEFAULT 0;
    ALTER TABLE appointment ADD COLUMN buffer_before integer NOT NULL DEFAULT 0, ADD COLUMN buffer_after integer NOT NULL DEFAULT 0`.execute(
    db,
  );
}
