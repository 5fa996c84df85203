import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE webhook_test (
      crm_id text NOT NULL,
      event_id uuid NOT NULL,
      started_at timestamptz NOT NULL DEFAULT now(),
      ended boolean NOT NULL DEFAULT false,
      PRIMARY KEY (crm_id, event_id)
    )`.execute(db);
}
