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
  /** Where developers look at the mails of sandboxes; undefined: nowhere but over the API. */
  sandboxSmtpUrl?: string | undefined;
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
  const { database, smtpUrl, sandboxSmtpUrl, connections, quotas, timings, onOutcome, logger } = options;
  const mailer = createMailer({ url: smtpUrl, connections, replyMs: timings.replyMs });
  const catcher =
    sandboxSmtpUrl === undefined
      ? undefined
      : createMailer({ url: sandboxSmtpUrl, connections: 1, replyMs: timings.replyMs });
  const checkQuotas = createQuotaCheck(database, quotas, timings);
  const recordOutcome = createOutcomeRecorder(database);
  const kind: DeliveryKind<MailRow, Outcome> = {
    name: 'mail',
    table: mailTable,
    attempt: (mail, signal, stopping) =>
      attempt({ mailer, catcher, checkQuotas, timings, logger }, mail, { signal, stopping }),
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
      catcher?.close();
    },
  };
}

const showMs = 5_000;

interface Sending {
  mailer: Mailer;
  catcher: Mailer | undefined;
  checkQuotas: (mail: MailRow) => Promise<QuotaDecision | undefined>;
  timings: MailTimings;
  logger: Logger;
}

async function attempt(
  sending: Sending,
  mail: MailRow,
  { signal, stopping }: { signal: AbortSignal; stopping: AbortSignal },
): Promise<Outcome> {
  if (mail.expiresAt !== null && mail.expiresAt <= databaseTime(mail)) return { outcome: 'give-up', reason: 'expired' };
  const { mailer, checkQuotas, timings } = sending;
  const progress: Progress = {};
  try {
    const refusal = await checkQuotas(mail);
    if (refusal !== undefined) return refusal;
    if (mail.sandbox) return await showOnly(sending, mail, signal);
    await mailer.send(mail, progress, signal);
    return { outcome: 'sent' };
  } catch (error) {
    const { message } = progress;
    const failure: Failure = {
      error,
      connected: message !== undefined,
      handedOver: message?.readableEnded === true,
      stopped: stopping.aborted,
    };
    return decideAfterFailure(failure, mail, databaseTime(mail), timings);
  }
}

/** A mail of a sandbox counts as sent once it is kept. That it cannot be shown elsewhere, too, delays nothing. */
async function showOnly({ catcher, logger }: Sending, mail: MailRow, signal: AbortSignal): Promise<Outcome> {
  await catcher?.send(mail, {}, AbortSignal.any([signal, AbortSignal.timeout(showMs)])).catch((error: unknown) => {
    logger.warn({ err: error, id: mail.id }, 'a mail of a sandbox cannot be shown');
  });
  return { outcome: 'sent', serverAway: false };
}
