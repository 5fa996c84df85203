import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

const everyMs = 60 * 60 * 1_000;
const batchSize = 1_000;
/** Longer than any event can be redelivered. */
const keptDays = 30;

/**
 * Deletes the remains (ids and codes) of mails that were finished a month ago, at startup and then every hour. Safe
 * with many replicas.
 */
export function startMailCleanUp({
  database,
  logger,
}: {
  database: Database<NotificationSchema>;
  logger: Logger;
}): AsyncDisposable {
  const run = (limit: number): Promise<number> => deleteFinishedMails(database, limit);
  return startLoop({ name: 'the removal of finished mails', logger, everyMs, batch: batchSize, run });
}

async function deleteFinishedMails({ kysely }: Database<NotificationSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM mail WHERE (crm_id, id) IN (
      SELECT crm_id, id FROM mail
       WHERE state IN ('sent', 'failed') AND finished_at < now() - make_interval(days => ${keptDays})
       LIMIT ${limit}
         FOR UPDATE SKIP LOCKED)`.execute(kysely);
  return Number(numAffectedRows);
}
