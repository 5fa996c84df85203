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
  dependencies: Pick<ReminderDependencies, 'database' | 'metrics'>,
  signal?: AbortSignal,
): Promise<void> {
  while (await remindOfDue(dependencies)) if (signal?.aborted) return;
}

/** Returns whether more may be due already. */
async function remindOfDue({
  database,
  metrics,
}: Pick<ReminderDependencies, 'database' | 'metrics'>): Promise<boolean> {
  const request = JSON.stringify({ limit: requestsPerCall, origin: originJson() });
  const { rows } = await sql<{
    said: { written: number; isBehind: boolean };
  }>`SELECT remind_of_requests(${request}::jsonb) AS said`.execute(database.kysely);
  const { written, isBehind } = rows[0]!.said;
  metrics.written(written);
  if (written > 0) database.committed();
  return isBehind;
}
