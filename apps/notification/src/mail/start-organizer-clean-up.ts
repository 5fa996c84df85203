import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

const everyMs = 60 * 60 * 1_000;
const batchSize = 1_000;

/** Deletes the organizers of events that ended a month ago, at startup and then every hour. Safe with many replicas. */
export function startOrganizerCleanUp({
  database,
  logger,
}: {
  database: Database<NotificationSchema>;
  logger: Logger;
}): AsyncDisposable {
  const run = (limit: number): Promise<number> => deleteOrganizers(database, limit);
  return startLoop({ name: 'the removal of organizers', logger, everyMs, batch: batchSize, run });
}

async function deleteOrganizers({ kysely }: Database<NotificationSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM event_organizer WHERE (crm_id, participation_id) IN (
      SELECT crm_id, participation_id FROM event_organizer WHERE keep_until < now() ORDER BY keep_until LIMIT ${limit} FOR UPDATE SKIP LOCKED)`.execute(
    kysely,
  );
  return Number(numAffectedRows);
}
