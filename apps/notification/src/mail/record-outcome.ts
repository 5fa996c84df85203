import { dueAfter } from '@scheduling/delivery';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { callFunction, type Database, forgetKeys } from '@scheduling/postgres';
import { providerMailTemplates } from '@scheduling/runtime';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { countedDigest, isToProvider, type QuotaDecision } from './check-quotas.ts';
import { confirmErasure } from './confirm-erasure.ts';
import type { FailureDecision } from './decide-after-failure.ts';
import { type MailRow, mailTable, urgentTemplates } from './mail-table.ts';

/** A statement that takes longer would block the delivery. */
const maxDecidedAtOnce = 500;

type NotSent = FailureDecision | QuotaDecision;

/** `serverAway` is false for a mail of a sandbox, which says nothing about the mail server. */
interface Sent {
  outcome: 'sent';
  serverAway?: false;
}

/** The outcome of an attempt. */
export type Outcome = Sent | NotSent;

/**
 * Records the outcome of an attempt, unless the lease is lost. A finished mail keeps neither address nor text; if it
 * was the last one to an erased person, the erasure is confirmed in the same transaction. Returns the outcomes of other
 * mails that follow from it.
 */
export function createOutcomeRecorder(
  database: Database<NotificationSchema>,
): (mail: MailRow, outcome: Outcome) => Promise<Outcome[]> {
  return async (mail, outcome) => {
    const concernsOthers = mail.erasureId !== null || urgentTemplates.includes(mail.template);
    if (outcome.outcome === 'sent' && !concernsOthers && (await recordSent(database.kysely, mail))) {
      // A later mail about the same thing may be written now.
      database.committed();
      return [];
    }
    return database.transaction(async (tx) => {
      if (await deleteErased(tx, mail)) return [];
      return outcome.outcome === 'sent' ? recordSentForOthers(tx, mail) : recordNotSent(tx, mail, outcome);
    });
  };
}

/** Deletes a mail whose person or provider was erased while it was being sent, whatever came of it. */
async function deleteErased(tx: Transaction<NotificationSchema>, { crmId, id, lease }: MailRow): Promise<boolean> {
  // An erasure that begins now waits until the transaction ends.
  const mail = await tx
    .selectFrom('mail')
    .select('erasedAt')
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('lease', '=', lease)
    .forUpdate()
    .executeTakeFirst();
  if (!mail?.erasedAt) return false;
  await tx.deleteFrom('mail').where('crmId', '=', crmId).where('id', '=', id).execute();
  await forgetKeys(tx, crmId, [id]);
  return true;
}

/**
 * Returns whether it was recorded: the lease was held, and neither the person nor the provider is erased. Outside of a
 * transaction, it shares one with other mails that were sent at about the same time.
 */
function recordSent(db: Kysely<NotificationSchema>, mail: MailRow): Promise<boolean> {
  const { crmId, id, lease, erasureId } = mail;
  const request = {
    crmId,
    id,
    lease,
    ...(erasureId === null && { recipientDigest: countedDigest(mail).toString('hex') }),
  };
  return callFunction(db, { name: 'record_sent_mail', request, locks: id });
}

/** A mail that was sent, whose outcome others wait for. */
async function recordSentForOthers(tx: Transaction<NotificationSchema>, mail: MailRow): Promise<Outcome[]> {
  if (!(await recordSent(tx, mail))) return [];
  if (mail.erasureId === null) return dropSuperseded(tx, mail);
  await endLastMail(tx, { ...mail, erasureId: mail.erasureId });
  return [];
}

async function recordNotSent(tx: Transaction<NotificationSchema>, mail: MailRow, outcome: NotSent): Promise<Outcome[]> {
  const { numUpdatedRows } = await tx
    .updateTable('mail')
    .set({ lease: null, held: outcome.outcome === 'hold', ...changesOf(outcome) })
    .where('crmId', '=', mail.crmId)
    .where('id', '=', mail.id)
    .where('lease', '=', mail.lease)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) return [];
  if (hasFailed(outcome)) await reportFailures(tx, [mail]);
  if (mail.erasureId === null) return isOverQuota(outcome) ? decideOthers(tx, mail, outcome) : [];
  if (outcome.outcome === 'give-up') await endLastMail(tx, { ...mail, erasureId: mail.erasureId });
  return [];
}

/** Nothing is left of the last mail to an erased person if its provider was deleted before it ended. */
async function endLastMail(
  tx: Transaction<NotificationSchema>,
  { crmId, id, erasureId, providerId }: Pick<MailRow, 'crmId' | 'id' | 'providerId'> & { erasureId: string },
): Promise<void> {
  await confirmErasure(tx, { crmId, erasureId });
  await tx
    .deleteFrom('mail')
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where(sql<boolean>`provider_is_erased(${crmId}, ${providerId}::uuid)`)
    .execute();
}

type OverQuota = Extract<QuotaDecision, { outcome: 'hold' } | { storedBefore: Date }>;

function isOverQuota(outcome: NotSent): outcome is OverQuota {
  return outcome.outcome === 'hold' || (outcome.outcome === 'drop' && outcome.reason !== 'superseded');
}

/**
 * Due mails over the same quota wait for the same hour, as far as it has room, or are dropped, too: each would be
 * leased only to learn that.
 */
async function decideOthers(
  tx: Transaction<NotificationSchema>,
  mail: MailRow,
  outcome: OverQuota,
): Promise<Outcome[]> {
  const { crmId, recipient } = mail;
  const isHeld = outcome.outcome === 'hold';
  const [room, storedBefore] = isHeld ? [outcome.room - 1] : [maxDecidedAtOnce, outcome.storedBefore];
  const others = await tx
    .with('others', (query) =>
      query
        .selectFrom('mail')
        .select('id')
        .where('crmId', '=', crmId)
        .where('state', '=', 'pending')
        .where('lease', 'is', null)
        .where('dueAt', '<=', sql<Date>`now()`)
        .where('template', 'not in', urgentTemplates)
        .$if(isToProvider(mail), (select) => select.where('template', 'in', providerMailTemplates))
        .$if(outcome.reason === 'recipient-quota', (select) =>
          select.where('recipient', '=', recipient).where('template', 'not in', providerMailTemplates),
        )
        .$if(storedBefore !== undefined, (select) => select.where('createdAt', '<', storedBefore!))
        .orderBy('dueAt')
        .orderBy('id')
        .limit(Math.min(room, maxDecidedAtOnce))
        .forUpdate()
        .skipLocked(),
    )
    .updateTable('mail')
    .set({ held: isHeld, ...changesOf(outcome) })
    .where('crmId', '=', crmId)
    .where('id', 'in', (query) => query.selectFrom('others').select('id'))
    .returning(['crmId', 'id', 'aboutId', 'template', 'customerId', 'providerId'])
    .execute();
  if (hasFailed(outcome)) await reportFailures(tx, others);
  return others.map(() => outcome);
}

/** The recipient does not know what the mail says. A superseded one does not count: a later mail says what is true. */
function hasFailed(outcome: NotSent): boolean {
  return outcome.outcome === 'give-up' || (outcome.outcome === 'drop' && outcome.reason !== 'superseded');
}

type FailedMail = Pick<MailRow, 'crmId' | 'id' | 'aboutId' | 'template' | 'customerId' | 'providerId'>;

async function reportFailures(tx: Transaction<NotificationSchema>, mails: FailedMail[]): Promise<void> {
  const failures = mails.map((mail) => {
    const { crmId, id: mailId, aboutId, template, customerId, providerId } = mail;
    return {
      crmId,
      mailId,
      aboutId: isToProvider(mail) ? providerId! : aboutId,
      template,
      // The person that it is about is not its recipient.
      customerId: isToProvider(mail) ? undefined : (customerId ?? undefined),
      providerId: providerId ?? undefined,
    };
  });
  await appendEvent(tx, events.mailFailed, ...failures);
}

/** Earlier mails that wait for a quota, or behind one that does: what they say is no longer true. */
async function dropSuperseded(
  tx: Transaction<NotificationSchema>,
  { crmId, aboutId, version }: MailRow,
): Promise<Outcome[]> {
  const outcome: QuotaDecision = { outcome: 'drop', reason: 'superseded', serverAway: false };
  const { numUpdatedRows } = await tx
    .updateTable('mail')
    .set({ lease: null, held: false, ...changesOf(outcome) })
    .where('crmId', '=', crmId)
    .where('aboutId', '=', aboutId)
    .where('version', '<', version)
    .where('state', '=', 'pending')
    .executeTakeFirstOrThrow();
  return Array.from({ length: Number(numUpdatedRows) }, () => outcome);
}

function changesOf(outcome: NotSent) {
  const finished = { content: null, recipient: null, finishedAt: sql<Date>`now()` };
  const answered = sql<number>`attempts + 1`;
  switch (outcome.outcome) {
    case 'give-up':
      return { ...finished, state: 'failed' as const, attempts: answered, lastError: outcome.reason };
    case 'retry':
      return { dueAt: dueAfter(outcome.afterMs, mailTable), attempts: answered, lastError: outcome.reason };
    case 'retry-once':
      return {
        dueAt: dueAfter(outcome.afterMs, mailTable),
        attempts: answered,
        lastError: outcome.reason,
        uncertain: true,
      };
    case 'hold':
      return { dueAt: outcome.until, lastError: outcome.reason };
    case 'drop':
      return { ...finished, state: 'failed' as const, lastError: outcome.reason };
    case 'postpone':
      return { dueAt: sql<Date>`now()`, lastError: outcome.reason };
  }
}
