import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

const everyMs = 60 * 60 * 1_000;
const batchSize = 1_000;
/** interface 11.2. */
const keptDays = 7;

/** Deletes what sandboxes have kept for a week, at startup and then every hour. Safe with many replicas. */
export function startSandboxMailCleanUp({
  database,
  logger,
}: {
  database: Database<NotificationSchema>;
  logger: Logger;
}): AsyncDisposable {
  const run = (limit: number): Promise<number> => deleteOldMails(database, limit);
  return startLoop({ name: 'the removal of the mails of sandboxes', logger, everyMs, batch: batchSize, run });
}

async function deleteOldMails({ kysely }: Database<NotificationSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM sandbox_mail WHERE (crm_id, mail_id) IN (
      SELECT crm_id, mail_id FROM sandbox_mail
       WHERE sent_at < now() - make_interval(days => ${keptDays})
       LIMIT ${limit}
         FOR UPDATE SKIP LOCKED)`.execute(kysely);
  return Number(numAffectedRows);
}
