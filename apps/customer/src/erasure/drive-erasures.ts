import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { type Logger, type Loop, newRequestId, runWithContext, startLoop } from '@scheduling/runtime';
import { sql, type Transaction } from 'kysely';
import { setTimeout as delay } from 'node:timers/promises';
import type { CustomerDependencies } from '../customer/customer.ts';
import type { CustomerSchema } from '../db/schema.ts';
import { finishErasure } from './delete-customer.ts';
import { type ErasureRow, noticeMinutes, requestOf } from './erasure.ts';
import { finishAddressErasure } from './finish-address-erasure.ts';

/**
 * How long a request may take before its intent counts as abandoned, and a confirmation before it is requested again.
 */
const patienceSeconds = 5;
/** So each erasure is seen before it is due, whichever replica stored it. */
const longestPauseMs = patienceSeconds * 1_000;
const shortestPauseMs = 1_000;
const batchSize = 50;
/** CRMs whose erasures a process finishes at the same time, one of each. */
const crmsAtOnce = 4;

/**
 * Completes every erasure despite crashes and outages: finishes those whose request died, republishes those not
 * confirmed, and clears a notice after 10 minutes. Woken when there is a new one that no request completes. CRMs take
 * turns, however many erasures each has. Safe with many replicas.
 */
export function startErasureDriver(dependencies: CustomerDependencies, logger: Logger): Loop {
  let pauseMs = longestPauseMs;
  return startLoop({
    name: 'the erasure driver',
    logger,
    everyMs: () => pauseMs,
    batch: batchSize,
    run: async (limit, signal) => {
      const dueMs = await nextDueMs(dependencies);
      pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, dueMs));
      if (dueMs > 0) return 0;
      const blanked = await blankOldNotices(dependencies, limit);
      const republished = await republish(dependencies, limit);
      const unfinished = await takeUnfinished(dependencies);
      if (unfinished.length === 0) return Math.max(blanked, republished);
      const beganMs = performance.now();
      await Promise.all(unfinished.map((erasure) => finish(dependencies, erasure, logger)));
      // Requests come first: whatever else is going on, this takes at most half of the time.
      await delay(performance.now() - beganMs, undefined, { signal });
      // There may be more of the same CRMs.
      return limit;
    },
  });
}

/** In the name of whoever requested it: the events say so. */
async function finish(dependencies: CustomerDependencies, erasure: ErasureRow, logger: Logger): Promise<void> {
  const context = { requestId: newRequestId(), ...(erasure.requestedBy !== null && { actor: erasure.requestedBy }) };
  try {
    await runWithContext(context, () =>
      erasure.subject === 'address'
        ? finishAddressErasure(dependencies, erasure)
        : finishErasure(dependencies, erasure),
    );
  } catch (error) {
    logger.warn({ err: error, erasureId: erasure.id }, 'the erasure could not be completed yet');
  }
}

/**
 * How long until the next erasure is due; negative for one that is. One query, because it is almost always the only
 * one. A transaction would also wake everything that waits for commits.
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
const isOverdue = sql<boolean>`published_at < now() - make_interval(secs => ${patienceSeconds})`;

async function blankOldNotices({ database }: CustomerDependencies, limit: number): Promise<number> {
  const { numUpdatedRows } = await database.kysely
    .updateTable('erasure')
    .set({ notice: null })
    .where('id', 'in', (query) =>
      query.selectFrom('erasure').select('id').where(isNoticeExpired).limit(limit).forUpdate().skipLocked(),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Those that have waited for confirmations for a while. Returns how many there were. */
function republish({ database }: CustomerDependencies, limit: number): Promise<number> {
  return database.transaction(async (tx) => {
    const overdue = await tx
      .selectFrom('erasure')
      .selectAll()
      .where('state', '=', 'requested')
      .where(isOverdue)
      .orderBy('publishedAt')
      .limit(limit)
      .forUpdate()
      .skipLocked()
      .execute();
    await postpone(tx, overdue);
    await appendEvent(tx, events.customerErasureRequested, ...overdue.map(requestOf));
    return overdue.length;
  });
}

/** Of each of some CRMs, in no order, the one that has made no progress for the longest time. */
function takeUnfinished({ database }: CustomerDependencies): Promise<ErasureRow[]> {
  return database.transaction(async (tx) => {
    const { rows } = await sql<ErasureRow>`
      SELECT erasure.*
        FROM (SELECT crm_id FROM (SELECT DISTINCT crm_id FROM erasure WHERE state = 'checking' AND ${isOverdue}) AS waiting ORDER BY random() LIMIT ${crmsAtOnce}) AS crm
       CROSS JOIN LATERAL (
         SELECT * FROM erasure
          WHERE crm_id = crm.crm_id AND state = 'checking' AND ${isOverdue}
          ORDER BY published_at LIMIT 1
            FOR UPDATE SKIP LOCKED) AS erasure`.execute(tx);
    await postpone(tx, rows);
    return rows;
  });
}

async function postpone(tx: Transaction<CustomerSchema>, erasures: ErasureRow[]): Promise<void> {
  if (erasures.length === 0) return;
  await tx
    .updateTable('erasure')
    .set({ publishedAt: sql<Date>`now()` })
    .where('id', '=', sql<string>`ANY(${erasures.map(({ id }) => id)})`)
    .execute();
}
