import type { Database } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';

/** How long events are kept (interface 6.1). */
export const keptDays = 30;

/**
 * Deletes events that were recorded a month ago, except for the newest of each CRM, and remembers the last of those,
 * because clients may continue after both. Returns how many, at most the limit.
 */
export async function deleteOldEvents({ kysely }: Database<WebhookSchema>, limit: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    WITH removed AS (
      DELETE FROM event WHERE (crm_id, sequence) IN (
        SELECT crm_id, sequence
          FROM event JOIN event_counter USING (crm_id)
         WHERE recorded_at < now() - make_interval(days => ${keptDays}) AND sequence < last_sequence
         ORDER BY recorded_at, crm_id, sequence
         LIMIT ${limit}
           FOR UPDATE OF event SKIP LOCKED)
      RETURNING crm_id, id, sequence
    ), remembered AS (
      -- In the order of the CRMs, because another replica may be doing the same.
      INSERT INTO removed_event AS newest (crm_id, id, sequence)
      SELECT DISTINCT ON (crm_id) crm_id, id, sequence FROM removed ORDER BY crm_id, sequence DESC
      ON CONFLICT (crm_id) DO UPDATE SET id = excluded.id, sequence = excluded.sequence WHERE excluded.sequence > newest.sequence
    )
    SELECT count(*) AS count FROM removed`.execute(kysely);
  return rows[0]!.count;
}
