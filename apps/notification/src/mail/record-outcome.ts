import { dueAfter } from '@scheduling/delivery';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import type { Database } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { type QuotaDecision, recipientDigest, urgentTemplates } from './check-quotas.ts';
import type { FailureDecision } from './decide-after-failure.ts';
import type { MailRow } from './deliver-mails.ts';

/** The outcome of an attempt. */
export type Outcome = { outcome: 'sent' } | FailureDecision | QuotaDecision;

/**
 * Records the outcome of an attempt, unless the lease is lost. A finished mail keeps neither address nor text; if it was the last one to an
 * erased person, the erasure is confirmed in the same transaction. Returns how many other mails it supersedes.
 */
export async function recordOutcome(database: Database<NotificationSchema>, mail: MailRow, outcome: Outcome): Promise<number> {
  return database.transaction(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('mail')
      .set({ lease: null, held: outcome.outcome === 'hold', ...changesOf(outcome) })
      .where('crmId', '=', mail.crmId)
      .where('id', '=', mail.id)
      .where('lease', '=', mail.lease)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) return 0;
    const isSent = outcome.outcome === 'sent';
    if (mail.erasureId !== null) {
      if (isSent || outcome.outcome === 'give-up') await confirmErasure(tx, mail, mail.erasureId);
      return 0;
    }
    if (isSent) await countForQuotas(tx, mail);
    return isSent && urgentTemplates.includes(mail.template) ? dropSuperseded(tx, mail) : 0;
  });
}

async function confirmErasure(tx: Transaction<NotificationSchema>, { crmId }: MailRow, erasureId: string): Promise<void> {
  await appendEvent(tx, events.notificationErasureConfirmed, { crmId, erasureId, service: 'notification' });
}

async function countForQuotas(tx: Transaction<NotificationSchema>, mail: MailRow): Promise<void> {
  await tx.insertInto('recentMail').values({ crmId: mail.crmId, mailId: mail.id, recipientDigest: recipientDigest(mail) }).execute();
}

/** Earlier mails that wait for a quota, or behind one that does: what they say is no longer true. */
async function dropSuperseded(tx: Transaction<NotificationSchema>, { crmId, aboutId, version }: MailRow): Promise<number> {
  const { numUpdatedRows } = await tx
    .updateTable('mail')
    .set({ lease: null, held: false, ...changesOf({ outcome: 'drop', reason: 'superseded', serverAway: false }) })
    .where('crmId', '=', crmId)
    .where('aboutId', '=', aboutId)
    .where('version', '<', version)
    .where('state', '=', 'pending')
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
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
    case 'hold':
      return { dueAt: outcome.until, lastError: outcome.reason };
    case 'drop':
      return { ...finished, state: 'failed' as const, lastError: outcome.reason };
    case 'postpone':
      return { dueAt: sql<Date>`now()`, lastError: outcome.reason };
  }
}
