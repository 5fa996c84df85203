import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { CustomerDependencies } from '../customer/customer.ts';
import { finishErasure } from './delete-customer.ts';
import { type ErasureRow, noticeMinutes } from './erasure.ts';

const everyMs = 2_000;
/** How long a request may take before its intent counts as abandoned, and a confirmation before it is requested again. */
const patienceSeconds = 5;
const batchSize = 50;

/**
 * Completes every erasure despite crashes and outages: finishes those whose request died, republishes those not confirmed, and clears a notice
 * after 10 minutes. Safe with many replicas.
 */
export function startErasureDriver(dependencies: CustomerDependencies, logger: Logger): AsyncDisposable {
  return startLoop({
    name: 'the erasure driver',
    logger,
    everyMs,
    batch: batchSize,
    run: async (limit) => {
      if (!(await isAnythingDue(dependencies))) return 0;
      const blanked = await blankOldNotices(dependencies, limit);
      const overdue = await takeOverdue(dependencies, limit);
      for (const erasure of overdue.filter(({ state }) => state === 'checking')) {
        await finishErasure(dependencies, erasure).catch((error: unknown) => {
          logger.warn({ err: error, erasureId: erasure.id }, 'the erasure could not be completed yet');
        });
      }
      return Math.max(blanked, overdue.length);
    },
  });
}

/** One query, because it is almost always the only one. A transaction would also wake everything that waits for commits. */
async function isAnythingDue({ database }: CustomerDependencies): Promise<boolean> {
  const due = await database.kysely
    .selectFrom('erasure')
    .select('id')
    .where(isNoticeExpired)
    .unionAll((query) => query.selectFrom('erasure').select('id').where(isOverdue))
    .limit(1)
    .executeTakeFirst();
  return due !== undefined;
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
    const requests = overdue
      .filter(({ state }) => state === 'requested')
      .map(({ crmId, customerId, id: erasureId, notice }) => ({ crmId, customerId, erasureId, notify: notice !== null }));
    await appendEvent(tx, events.customerErasureRequested, ...requests);
    return overdue;
  });
}
