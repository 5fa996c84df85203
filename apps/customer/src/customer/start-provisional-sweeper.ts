import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { CustomerDependencies } from './customer.ts';
import { provisionalSeconds } from './prepare-customer.ts';
import { decideCustomer } from './provisional-customer.ts';

const everyMs = 10_000;
const batchSize = 50;

/**
 * Decides about provisional customers whom nobody has asked for, because a process ended between their preparation and
 * the end of the booking. Every replica may run this; nothing depends on when it does.
 */
export function startProvisionalSweeper(dependencies: CustomerDependencies, logger: Logger): AsyncDisposable {
  const run = async (limit: number): Promise<number> => {
    const due = await dependencies.database.kysely
      .updateTable('customer')
      .set({ provisionalUntil: sql<Date>`now() + make_interval(secs => ${provisionalSeconds})` })
      .where(sql<boolean>`(crm_id, id) IN (
        SELECT crm_id, id FROM customer WHERE provisional_until <= now() ORDER BY provisional_until LIMIT ${limit} FOR UPDATE SKIP LOCKED)`)
      // Another replica may have settled it in the meantime.
      .where('provisionalUntil', 'is not', null)
      .returning(['crmId', 'id'])
      .execute();
    for (const customer of due) await decideCustomer(dependencies, customer);
    return due.length;
  };
  return startLoop({ name: 'the decision about provisional customers', logger, everyMs, batch: batchSize, run });
}
