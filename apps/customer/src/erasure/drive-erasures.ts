import { appendEvent, events } from '@scheduling/messaging';
import type { Logger } from '@scheduling/runtime';
import { sql } from 'kysely';
import { setTimeout as delay } from 'node:timers/promises';
import type { CustomerDependencies } from '../customer/customer.ts';
import { finishErasure } from './delete-customer.ts';
import { type ErasureRow, noticeMinutes } from './erasure.ts';
import { listErasures } from './list-erasures.ts';

const roundMs = 1_000;
/** How long a request may take before its intent counts as left behind, and a confirmation before it is asked for again. */
const patienceSeconds = 5;
const batchSize = 50;
const warnAfterMs = 60_000;
const warnEveryMs = 60_000;

/**
 * Drives every erasure to its end, whatever crashed or was away: finishes those whose request died, publishes again what was not confirmed,
 * and blanks a notice after 10 minutes. Safe with many replicas.
 */
export function startErasureDriver(dependencies: CustomerDependencies, logger: Logger): AsyncDisposable {
  const stopping = new AbortController();
  const running = driveForever(dependencies, logger, stopping.signal);
  return {
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await running;
    },
  };
}

async function driveForever(dependencies: CustomerDependencies, logger: Logger, signal: AbortSignal): Promise<void> {
  let warnedMs = 0;
  while (!signal.aborted) {
    try {
      await blankOldNotices(dependencies);
      for (const erasure of await takeOverdue(dependencies)) {
        await finishErasure(dependencies, erasure).catch((error: unknown) => {
          logger.warn({ err: error, erasureId: erasure.id }, 'the erasure could not be finished yet');
        });
      }
      if (Date.now() - warnedMs > warnEveryMs) {
        warnedMs = Date.now();
        await warnOfOldErasures(dependencies, logger);
      }
    } catch (error) {
      logger.warn({ err: error }, 'the erasures could not be driven, trying again');
    }
    await delay(roundMs, undefined, { signal }).catch(() => undefined);
  }
}

async function blankOldNotices({ database }: CustomerDependencies): Promise<void> {
  await database.kysely
    .updateTable('erasure')
    .set({ notice: null })
    .where('notice', 'is not', null)
    .where('requested_at', '<', sql<Date>`now() - make_interval(mins => ${noticeMinutes})`)
    .execute();
}

/** Publishes the overdue requests again, and returns the intents that were left behind. */
async function takeOverdue({ database }: CustomerDependencies): Promise<ErasureRow[]> {
  return database.transaction(async (tx) => {
    const overdue = await tx
      .selectFrom('erasure')
      .selectAll()
      .where('state', '<>', 'complete')
      .where('published_at', '<', sql<Date>`now() - make_interval(secs => ${patienceSeconds})`)
      .orderBy('published_at')
      .limit(batchSize)
      .forUpdate()
      .skipLocked()
      .execute();
    if (overdue.length === 0) return [];
    await tx
      .updateTable('erasure')
      .set({ published_at: sql<Date>`now()` })
      .where('id', '=', sql<string>`ANY(${overdue.map(({ id }) => id)})`)
      .execute();
    const requests = overdue
      .filter(({ state }) => state === 'requested')
      .map((erasure) => ({
        crmId: erasure.crm_id,
        customerId: erasure.customer_id,
        erasureId: erasure.id,
        notify: erasure.notice !== null,
      }));
    await appendEvent(tx, events.customerErasureRequested, ...requests);
    return overdue.filter(({ state }) => state === 'checking');
  });
}

async function warnOfOldErasures(dependencies: CustomerDependencies, logger: Logger): Promise<void> {
  for (const { id, requested_at, completed_at, awaiting } of await listErasures(dependencies)) {
    const ageMs = Date.now() - requested_at.getTime();
    if (completed_at === null && ageMs > warnAfterMs) {
      logger.warn({ erasureId: id, ageSeconds: Math.round(ageMs / 1_000), awaiting }, 'an erasure is not complete yet');
    }
  }
}
