import { originJson } from '@scheduling/messaging';
import { sql } from 'kysely';
import type { ReminderDependencies } from './write-reminders.ts';

/** As many fit into the time of a statement. */
const requestsPerCall = 500;

/**
 * Says of the requests that nobody has decided that it is time to remind the provider, or to tell the person
 * (remind-of-requests.sql). Any number of replicas can do this at the same time.
 */
export async function remindOfRequests(
  { database, metrics }: Pick<ReminderDependencies, 'database' | 'metrics'>,
  signal?: AbortSignal,
): Promise<void> {
  const request = JSON.stringify({ limit: requestsPerCall, origin: originJson() });
  let isBehind = true;
  while (isBehind && signal?.aborted !== true) {
    const { rows } = await sql<{ written: number; isBehind: boolean }>`
      SELECT written, "isBehind" FROM jsonb_to_record(remind_of_requests(${request}::jsonb)) AS said (written integer, "isBehind" boolean)`.execute(
      database.kysely,
    );
    const [said] = rows;
    metrics.written(said!.written);
    if (said!.written > 0) database.committed();
    isBehind = said!.isBehind;
  }
}
