import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { type Logger, type Loop, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { CustomerDependencies } from '../customer/customer.ts';
import { finishErasure } from './delete-customer.ts';
import { type ErasureRow, noticeMinutes, requestOf } from './erasure.ts';
import { finishAddressErasure } from './finish-address-erasure.ts';

/** How long a request may take before its intent counts as abandoned, and a confirmation before it is requested again. */
const patienceSeconds = 5;
/** So each erasure is seen before it is due, whichever replica stored it. */
const longestPauseMs = patienceSeconds * 1_000;
const shortestPauseMs = 1_000;
const batchSize = 50;

/**
 * Completes every erasure despite crashes and outages: finishes those whose request died, republishes those not confirmed, and clears a notice
 * after 10 minutes. Woken when there is a new one that no request completes. Safe with many replicas.
 */
export function startErasureDriver(dependencies: CustomerDependencies, logger: Logger): Loop {
  let pauseMs = longestPauseMs;
  return startLoop({
    name: 'the erasure driver',
    logger,
    everyMs: () => pauseMs,
    batch: batchSize,
    run: async (limit) => {
      const dueMs = await nextDueMs(dependencies);
      pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, dueMs));
      if (dueMs > 0) return 0;
      const blanked = await blankOldNotices(dependencies, limit);
      const overdue = await takeOverdue(dependencies, limit);
      for (const erasure of overdue.filter(({ state }) => state === 'checking')) {
        const finishing = erasure.subject === 'address' ? finishAddressErasure(dependencies, erasure) : finishErasure(dependencies, erasure);
        await finishing.catch((error: unknown) => {
          logger.warn({ err: error, erasureId: erasure.id }, 'the erasure could not be completed yet');
        });
      }
      return Math.max(blanked, overdue.length);
    },
  });
}

/**
 * How long until the next erasure is due; negative for one that is. One query, because it is almost always the only one. A transaction would also wake
 * everything that waits for commits.
 */
async function nextDueMs({ database }: CustomerDependencies): Promise<number> {
  const { rows } = await sql<{ remaining: number | null }>`
    SELECT (extract(epoch FROM least(
      (SELECT min(requested_at) FROM erasure WHERE notice IS NOT NULL) + make_interval(mins => ${noticeMinutes}),
      (SELECT min(published_at) FROM erasure WHERE state <> 'complete') + make_interval(secs => ${patienceSeconds})) - now()) * 1000)::float8 AS remaining`.execute(
    database.kysely,
  );
  return rows[0]!.remaining ?? Number.POSITIVE_INFINITY;
}

const isNoticeExpired = sql<boolean>`notice IS NOT NULL AND requested_at < now() - make_interval(mins => ${noticeMinutes})`;
const isOverdue = sql<boolean>`state <> 'complete' AND published_at < now() - make_interval(secs => ${patienceSeconds})`;

async function blankOldNotices({ database }: CustomerDependencies, limit: number): Promise<number> {
  const { numUpdatedRows } = await database.kysely
    .updateTable('erasure')
    .set({ notice: null })
    .where('id', 'in', (query) =>
      query
        .selectFrom('erasure')
        .select('id')
        .where(isNoticeExpired)
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Takes the erasures that have made no progress for a while, and republishes those that wait for confirmations. */
async function takeOverdue({ database }: CustomerDependencies, limit: number): Promise<ErasureRow[]> {
  return database.transaction(async (tx) => {
    const overdue = await tx
      .selectFrom('erasure')
      .selectAll()
      .where(isOverdue)
      .orderBy('publishedAt')
      .limit(limit)
      .forUpdate()
      .skipLocked()
      .execute();
    if (overdue.length === 0) return [];
    await tx
      .updateTable('erasure')
      .set({ publishedAt: sql<Date>`now()` })
      .where('id', '=', sql<string>`ANY(${overdue.map(({ id }) => id)})`)
      .execute();
    const requested = overdue.filter(({ state }) => state === 'requested');
    await appendEvent(tx, events.customerErasureRequested, ...requested.map(requestOf));
    return overdue;
  });
}
