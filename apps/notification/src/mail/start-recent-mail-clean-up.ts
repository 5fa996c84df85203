import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { quotaWindowMs } from './timings.ts';

const everyMs = 60 * 1_000;
const batchSize = 1_000;

/**
 * Deletes the digests of recipients as soon as the hour is over for which the quotas count them. Safe with many
 * replicas.
 */
export function startRecentMailCleanUp({
  database,
  logger,
}: {
  database: Database<NotificationSchema>;
  logger: Logger;
}): AsyncDisposable {
  const run = (limit: number): Promise<number> => deleteCountedMails(database, limit);
  return startLoop({ name: 'the removal of counted mails', logger, everyMs, batch: batchSize, run });
}

async function deleteCountedMails({ kysely }: Database<NotificationSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM recent_mail WHERE (crm_id, mail_id) IN (
      SELECT crm_id, mail_id FROM recent_mail
       WHERE sent_at < date_bin(make_interval(secs => ${quotaWindowMs / 1_000}), now(), 'epoch')
       LIMIT ${limit}
         FOR UPDATE SKIP LOCKED)`.execute(kysely);
  return Number(numAffectedRows);
}
