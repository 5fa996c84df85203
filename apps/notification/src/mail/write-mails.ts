import { ParticipationState, type GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import { databaseTime, type DeliveryKind, dueAfter, type Outcome, startDelivery } from '@scheduling/delivery';
import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { callFunction, type Database } from '@scheduling/postgres';
import { describeError, type Logger } from '@scheduling/runtime';
import type { NotificationSchema } from '../db/schema.ts';
import type { NotificationDependencies } from '../dependencies.ts';
import type { MailOfChange } from './mail-of-change.ts';
import { suspiciousFailures, type UnwrittenMailRow, unwrittenMailTable } from './mail-table.ts';
import { type MailIntent, requestOf } from './store-mail.ts';
import type { MailTimings } from './timings.ts';
import { writeParticipationMail } from './write-participation-mail.ts';

export interface MailWritingOptions {
  dependencies: NotificationDependencies;
  timings: MailTimings;
  logger: Logger;
}

/**
 * It is logged, so it does not contain the mail. `needless`: there is no such participation or address any more, or
 * nothing to remind of.
 */
type Result = Outcome & ({ outcome: 'written' | 'needless' } | Retry);

interface Retry {
  outcome: 'retry';
  afterMs: number;
  reason: string;
  /** Whether this is not just a dependency that does not answer. */
  isFailure: boolean;
}

/** How many mails are written concurrently, half of them of one CRM at most. */
const writtenConcurrently = 10;
const firstRetryMs = 200;
const longestRetryMs = 30_000;

/**
 * Writes the mails about changes of participations. CRMs take turns, so one with thousands of changes delays only its
 * own.
 */
export function startMailWriting({ dependencies, timings, logger }: MailWritingOptions): AsyncDisposable {
  const { database } = dependencies;
  const written = new WeakMap<UnwrittenMailRow, MailIntent>();
  const kind: DeliveryKind<UnwrittenMailRow, Result> = {
    name: 'mail',
    verb: { base: 'write', done: ['written', 'needless'] },
    table: unwrittenMailTable,
    attempt: async (row, _signal, stopping) => {
      try {
        const intent = await write(dependencies, row);
        if (intent === undefined) return { outcome: 'needless' };
        written.set(row, intent);
        return { outcome: 'written' };
      } catch (error) {
        return decideAfterFailure(error, row, stopping, logger);
      }
    },
    record: (row, result) =>
      result.outcome === 'retry' ? postpone(database, row, result) : store(database, row, written.get(row)),
    describe: ({ id, template, attempts }) => ({ id, template, attempts }),
    onResult: () => undefined,
  };
  return startDelivery({ kind, database, connections: writtenConcurrently, timings, logger });
}

async function write(dependencies: NotificationDependencies, row: UnwrittenMailRow): Promise<MailIntent | undefined> {
  const { crmId, aboutId: participationId, version, actor, eventId, expiresAt } = row;
  const mailData = await undefinedIfNotFound(
    dependencies.participations.getParticipationMailData({ crmId, participationId, version }),
  );
  if (mailData === undefined || isPointless(row, mailData)) return undefined;
  const mail: MailOfChange = {
    template: row.template as MailOfChange['template'],
    calendar: row.calendarMethod ?? undefined,
  };
  const intent = await writeParticipationMail(dependencies, { crmId, participationId, version, mail, actor, mailData });
  return intent && { ...intent, eventId, expiresAt: expiresAt ?? undefined };
}

/** Of a reminder: the booking was cancelled or moved meanwhile, or it is too late. */
function isPointless(
  row: UnwrittenMailRow,
  { state, start }: Pick<GetParticipationMailDataResponse, 'state' | 'start'>,
): boolean {
  const { startsAt, expiresAt } = row;
  if (startsAt === null) return false;
  const isAsReminded = state === ParticipationState.BOOKED && start!.getTime() === startsAt.getTime();
  return !isAsReminded || (expiresAt !== null && expiresAt <= databaseTime(row));
}

/**
 * Whatever the error, the mail is written in the end: what does not answer will, and what is wrong will be corrected.
 */
function decideAfterFailure(
  error: unknown,
  { crmId, id, attempts, failures }: UnwrittenMailRow,
  stopping: AbortSignal,
  logger: Logger,
): Retry {
  const isFailure = !(error instanceof DomainError && error.category === 'unavailable');
  if (isFailure && failures + 1 >= suspiciousFailures)
    logger.error({ err: error, crmId, id, failures }, 'the mail cannot be written');
  const afterMs = stopping.aborted ? 0 : Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(attempts, 10));
  return {
    outcome: 'retry',
    afterMs,
    reason: error instanceof DomainError ? error.code : describeError(error).type,
    isFailure,
  };
}

/** Has no effect if the lease is lost. */
async function postpone(
  { kysely }: Database<NotificationSchema>,
  { crmId, id, lease }: UnwrittenMailRow,
  { afterMs, isFailure }: Retry,
): Promise<void> {
  await kysely
    .updateTable('unwrittenMail')
    .set((update) => ({
      lease: null,
      dueAt: dueAfter(afterMs, unwrittenMailTable),
      attempts: update('attempts', '+', 1),
      failures: update('failures', '+', Number(isFailure)),
    }))
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('lease', '=', lease)
    .execute();
}

/** The same. Without a mail, the row is removed only. */
async function store(
  database: Database<NotificationSchema>,
  { crmId, id, lease, customerId, createdAt }: UnwrittenMailRow,
  intent: MailIntent | undefined,
): Promise<void> {
  const request = { ...(intent && requestOf(intent)), crmId, id, lease, customerId, createdAt };
  await callFunction(database.kysely, { name: 'store_written_mail', request, locks: `${crmId} ${customerId}` });
  database.committed();
}
