import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { CalendarDependencies } from '../dependencies.ts';
import { refreshCustomer } from './customer-copy.ts';

const everyMs = 2_000;
/** Long enough for a change that is being made at the moment. */
const minimumAgeSeconds = 2;
const batchSize = 50;

/**
 * Fetches the customers whose references calendar has forgotten and has not been told since, because a process ended in
 * between. No booking depends on it: who books by a reference that is not known asks the customer service. Until then
 * the previous reference is shown.
 */
export function startCopyRefresher(dependencies: CalendarDependencies, logger: Logger): AsyncDisposable {
  const { kysely } = dependencies.database;
  const run = async (limit: number): Promise<number> => {
    const due = await kysely
      .updateTable('customer')
      .set({ refreshedAt: sql<Date>`clock_timestamp()` })
      .where(sql<boolean>`(crm_id, id) IN (
        SELECT crm_id, id FROM customer
         WHERE NOT reference_known AND erased_at IS NULL AND refreshed_at <= clock_timestamp() - make_interval(secs => ${minimumAgeSeconds})
         ORDER BY refreshed_at LIMIT ${limit}
           FOR NO KEY UPDATE SKIP LOCKED)`)
      .returning(['crmId', 'id as customerId'])
      .execute();
    for (const customer of due) await refreshCustomer(dependencies, customer);
    return due.length;
  };
  return startLoop({
    name: 'the refresh of customers whose reference changed',
    logger,
    everyMs,
    batch: batchSize,
    run,
  });
}
