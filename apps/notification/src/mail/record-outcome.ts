import { dueAfter } from '@scheduling/delivery';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import type { Database } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import type { FailureDecision } from './decide-after-failure.ts';
import type { MailRow } from './deliver-mails.ts';

/** The outcome of an attempt. */
export type Outcome = { outcome: 'sent' } | FailureDecision;

/**
 * Records the outcome of an attempt, unless the lease is lost. A finished mail keeps neither address nor text; if it was the last one to an
 * erased person, the erasure is confirmed in the same transaction.
 */
export async function recordOutcome(database: Database<NotificationSchema>, mail: MailRow, outcome: Outcome): Promise<void> {
  await database.transaction(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('mail')
      .set({ lease: null, ...changesOf(outcome) })
      .where('crmId', '=', mail.crmId)
      .where('id', '=', mail.id)
      .where('lease', '=', mail.lease)
      .executeTakeFirstOrThrow();
    const finished = outcome.outcome === 'sent' || outcome.outcome === 'give-up';
    if (numUpdatedRows === 0n || !finished || mail.erasureId === null) return;
    await appendEvent(tx, events.notificationErasureConfirmed, { crmId: mail.crmId, erasureId: mail.erasureId, service: 'notification' });
  });
}

function changesOf(outcome: Outcome) {
  const finished = { content: null, recipient: null, finishedAt: sql<Date>`now()` };
  const answered = sql<number>`attempts + 1`;
  switch (outcome.outcome) {
    case 'sent':
      return { ...finished, state: 'sent' as const, attempts: answered, lastError: null };
    case 'give-up':
      return { ...finished, state: 'failed' as const, attempts: answered, lastError: outcome.reason };
    case 'retry':
      return { dueAt: dueAfter(outcome.afterMs), attempts: answered, lastError: outcome.reason };
    case 'retry-once':
      return { dueAt: dueAfter(outcome.afterMs), attempts: answered, lastError: outcome.reason, uncertain: true };
    case 'postpone':
      return { dueAt: sql<Date>`now()`, lastError: outcome.reason };
  }
}
