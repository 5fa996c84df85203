import { databaseTime, type DeliveryKind, startDelivery } from '@scheduling/delivery';
import type { Database } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import type { NotificationSchema } from '../db/schema.ts';
import { createQuotaCheck, type MailQuotas, type QuotaDecision } from './check-quotas.ts';
import { decideAfterFailure, type Failure } from './decide-after-failure.ts';
import { type MailRow, mailTable } from './mail-table.ts';
import { createOutcomeRecorder, type Outcome } from './record-outcome.ts';
import { createMailer, type Mailer, type Progress } from './send-mail.ts';
import type { MailTimings } from './timings.ts';

export interface MailDeliveryOptions {
  database: Database<NotificationSchema>;
  smtpUrl: string;
  /** How many mails are sent concurrently. */
  connections: number;
  quotas: MailQuotas;
  timings: MailTimings;
  /** Called with the outcome of every attempt, and of the other mails that it decides, for metrics. */
  onOutcome: (outcome: Outcome) => void;
  logger: Logger;
}

/** Sends the stored mails. */
export function startMailDelivery(options: MailDeliveryOptions): AsyncDisposable {
  const { database, smtpUrl, connections, quotas, timings, onOutcome, logger } = options;
  const mailer = createMailer({ url: smtpUrl, connections, replyMs: timings.replyMs });
  const checkQuotas = createQuotaCheck(database, quotas, timings);
  const recordOutcome = createOutcomeRecorder(database);
  const kind: DeliveryKind<MailRow, Outcome> = {
    name: 'mail',
    table: mailTable,
    attempt: (mail, signal, stopping) => attempt({ mailer, checkQuotas, timings }, mail, { signal, stopping }),
    record: async (mail, outcome) => {
      for (const other of await recordOutcome(mail, outcome)) onOutcome(other);
    },
    describe: ({ id, template, attempts }) => ({ id, template, attempts }),
    onResult: onOutcome,
  };
  const delivery = startDelivery({ kind, database, connections, timings, logger });
  return {
    [Symbol.asyncDispose]: async () => {
      await delivery[Symbol.asyncDispose]();
      mailer.close();
    },
  };
}

interface Sending {
  mailer: Mailer;
  checkQuotas: (mail: MailRow) => Promise<QuotaDecision | undefined>;
  timings: MailTimings;
}

async function attempt(
  { mailer, checkQuotas, timings }: Sending,
  mail: MailRow,
  { signal, stopping }: { signal: AbortSignal; stopping: AbortSignal },
): Promise<Outcome> {
  if (mail.expiresAt !== null && mail.expiresAt <= databaseTime(mail)) return { outcome: 'give-up', reason: 'expired' };
  const progress: Progress = {};
  try {
    const refusal = await checkQuotas(mail);
    if (refusal !== undefined) return refusal;
    await mailer.send(mail, progress, signal);
    return { outcome: 'sent' };
  } catch (error) {
    const { message } = progress;
    const failure: Failure = { error, connected: message !== undefined, handedOver: message?.readableEnded === true, stopped: stopping.aborted };
    return decideAfterFailure(failure, mail, databaseTime(mail), timings);
  }
}
