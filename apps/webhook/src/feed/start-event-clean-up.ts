import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';

const everyMs = 60 * 60 * 1_000;
const batchSize = 1_000;
/** How long events are kept (interface 6.1). */
export const keptDays = 30;

/**
 * Deletes events that were recorded a month ago, except for the newest of each CRM, after which a client may continue; and what is remembered of subjects that
 * have been gone for a month. At the start and then every hour. Safe with many replicas.
 */
export function startEventCleanUp({ database, logger }: { database: Database<WebhookSchema>; logger: Logger }): AsyncDisposable {
  return startLoop({
    name: 'the removal of old events',
    logger,
    everyMs,
    batch: batchSize,
    run: async (limit) => Math.max(await deleteOldEvents(database, limit), await forgetGoneSubjects(database, limit)),
  });
}

async function deleteOldEvents({ kysely }: Database<WebhookSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM event WHERE (crm_id, sequence) IN (
      SELECT crm_id, sequence
        FROM event JOIN event_counter USING (crm_id)
       WHERE recorded_at < now() - make_interval(days => ${keptDays}) AND sequence < last_sequence
       ORDER BY recorded_at
       LIMIT ${limit}
         FOR UPDATE OF event SKIP LOCKED)`.execute(kysely);
  return Number(numAffectedRows);
}

async function forgetGoneSubjects({ kysely }: Database<WebhookSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM latest_version WHERE (crm_id, subject_id) IN (
      SELECT crm_id, subject_id FROM latest_version
       WHERE gone_at < now() - make_interval(days => ${keptDays})
       LIMIT ${limit}
         FOR UPDATE SKIP LOCKED)`.execute(kysely);
  return Number(numAffectedRows);
}
