import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';

const everyMs = 60 * 60 * 1_000;
const batchSize = 1_000;
const keptDays = 7;

/** Deletes attempts after a week, at the start and then every hour. Safe with many replicas. */
export function startAttemptCleanUp({
  database,
  logger,
}: {
  database: Database<WebhookSchema>;
  logger: Logger;
}): AsyncDisposable {
  return startLoop({
    name: 'the removal of old attempts',
    logger,
    everyMs,
    batch: batchSize,
    run: async (limit) => {
      const { numAffectedRows = 0n } = await sql`
        DELETE FROM webhook_attempt WHERE (crm_id, webhook_id, id) IN (
          SELECT crm_id, webhook_id, id FROM webhook_attempt
           WHERE attempted_at < now() - make_interval(days => ${keptDays})
           LIMIT ${limit}
             FOR UPDATE SKIP LOCKED)`.execute(database.kysely);
      return Number(numAffectedRows);
    },
  });
}
