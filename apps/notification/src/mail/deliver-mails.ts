import type { Database } from '@scheduling/postgres';
import { type ActiveSpan, inSpan, type Logger, type Loop, runWithContext, startLoop } from '@scheduling/runtime';
import { setTimeout as delay } from 'node:timers/promises';
import type { NotificationSchema } from '../db/schema.ts';
import { decideAfterFailure, type Failure } from './decide-after-failure.ts';
import { type DeliveryLimits, leaseDueMails, type MailRow, renewLeases } from './lease-mails.ts';
import { type Outcome, recordOutcome } from './record-outcome.ts';
import { createMailer, type Mailer, type Progress } from './send-mail.ts';
import type { DeliveryTimings } from './timings.ts';

export interface DeliveryOptions {
  database: Database<NotificationSchema>;
  smtpUrl: string;
  /** How many mails are sent at the same time. */
  connections: number;
  timings: DeliveryTimings;
  /** Called with what came of every attempt, for metrics. */
  onOutcome: (outcome: Outcome['outcome']) => void;
  logger: Logger;
}

interface Delivery extends DeliveryOptions {
  mailer: Mailer;
  limits: DeliveryLimits;
  inFlight: Map<string, MailRow>;
  running: Set<Promise<void>>;
  /** How often in a row the server was not there. */
  serverAway: number;
  /** Until then it counts as away, on the clock of {@link performance}. */
  pausedUntilMs: number;
  loop: Loop | undefined;
  /** Ends what is being sent. */
  ending: AbortController;
}

const recordRetryMs = 500;
const recordMs = 2_000;

/**
 * Sends the stored mails, at least once. Several processes share the work: an attempt holds a lease, and who lost it cannot record a
 * result. Half of the connections is the most that one CRM or one domain gets, so those that hang or have thousands of mails leave room
 * for others. Disposal finishes what is being sent, for some seconds; the rest goes back.
 */
export function startDelivery(options: DeliveryOptions): AsyncDisposable {
  const half = Math.ceil(options.connections / 2);
  const delivery: Delivery = {
    ...options,
    mailer: createMailer({ url: options.smtpUrl, connections: options.connections, replyMs: options.timings.replyMs }),
    limits: { total: options.connections, perCrm: half, perDomain: half },
    inFlight: new Map(),
    running: new Set(),
    serverAway: 0,
    pausedUntilMs: 0,
    loop: undefined,
    ending: new AbortController(),
  };
  const { logger, timings } = options;
  const everyMs = (): number => (delivery.serverAway > 0 ? pauseMs(delivery) : timings.pollMs);
  const loop = startLoop({ name: 'the search for due mails', logger, everyMs, run: () => lookForMails(delivery) });
  delivery.loop = loop;
  options.database.onCommit(loop.wake);
  const renewal = setInterval(() => void renew(delivery), timings.leaseMs / 3);
  return {
    [Symbol.asyncDispose]: async () => {
      await loop[Symbol.asyncDispose]();
      await settleWithin(delivery, timings.stopMs);
      delivery.ending.abort();
      await settleWithin(delivery, recordMs);
      clearInterval(renewal);
      delivery.mailer.close();
    },
  };
}

/** Begins to send what is due. 1: there may be more, and connections for it are free. */
async function lookForMails(delivery: Delivery): Promise<number> {
  const { database, inFlight, timings, limits } = delivery;
  if (performance.now() < delivery.pausedUntilMs) return 0;
  // One mail finds out whether the server is back.
  const free = (delivery.serverAway > 0 ? 1 : limits.total) - inFlight.size;
  if (free <= 0) return 0;
  const mails = await leaseDueMails(database, { limits, free, leaseMs: timings.leaseMs, inFlight: inFlight.values() });
  for (const mail of mails) start(delivery, mail);
  return mails.length > 0 && mails.length < free ? 1 : 0;
}

async function renew({ database, inFlight, timings, logger }: Delivery): Promise<void> {
  try {
    await renewLeases(database, inFlight.values(), timings.leaseMs);
  } catch (error) {
    logger.warn({ err: error }, 'the leases could not be renewed');
  }
}

function pauseMs({ serverAway, timings }: Delivery): number {
  return Math.min(timings.longestPauseMs, timings.firstPauseMs * 2 ** Math.min(serverAway - 1, 20));
}

function start(delivery: Delivery, mail: MailRow): void {
  delivery.inFlight.set(mail.id, mail);
  const attempt = runWithContext({ requestId: mail.request_id }, () => deliverTraced(delivery, mail)).finally(() => {
    delivery.inFlight.delete(mail.id);
    delivery.running.delete(attempt);
    delivery.loop?.wake();
  });
  delivery.running.add(attempt);
}

function deliverTraced(delivery: Delivery, mail: MailRow): Promise<void> {
  const attributes = { 'scheduling.mail.id': mail.id, 'scheduling.mail.template': mail.template };
  return inSpan('send mail', { kind: 'CLIENT', attributes, parent: mail.traceparent ?? undefined }, (span) => deliver(delivery, mail, span));
}

async function deliver(delivery: Delivery, mail: MailRow, span: ActiveSpan): Promise<void> {
  const outcome = await attempt(delivery, mail);
  span.set({ 'network.protocol.name': 'smtp', 'scheduling.mail.outcome': outcome.outcome });
  const { logger, onOutcome } = delivery;
  onOutcome(outcome.outcome);
  const facts = { mailId: mail.id, crmId: mail.crm_id, template: mail.template, attempts: mail.attempts, ...outcome };
  if (outcome.outcome === 'sent') logger.info(facts, 'mail sent');
  else logger.warn(facts, 'mail not sent');
  // A result that is not recorded would send the mail again; until then the lease is renewed.
  const deadlineMs = Date.now() + delivery.timings.attemptMs;
  while (Date.now() < deadlineMs) {
    try {
      await recordOutcome(delivery.database, mail, outcome);
      return;
    } catch (error) {
      logger.warn({ err: error, mailId: mail.id }, 'the result of a mail could not be recorded, trying again');
      await delay(recordRetryMs, undefined, { ref: false });
    }
  }
}

async function attempt(delivery: Delivery, mail: MailRow): Promise<Outcome> {
  const { timings, mailer, ending } = delivery;
  const remainingMs = mail.expires_at === null ? Number.POSITIVE_INFINITY : mail.expires_at.getTime() - Date.now();
  if (remainingMs <= 0) return { outcome: 'give-up', reason: 'expired' };
  const progress: Progress = {};
  const limit = AbortSignal.timeout(Math.min(timings.attemptMs, remainingMs));
  try {
    await mailer.send(mail, progress, AbortSignal.any([limit, ending.signal]));
    delivery.serverAway = 0;
    return { outcome: 'sent' };
  } catch (error) {
    const { message } = progress;
    const failure: Failure = { error, connected: message !== undefined, handedOver: message?.readableEnded === true, stopped: ending.signal.aborted };
    const history = { attempts: mail.attempts, uncertain: mail.uncertain, createdAt: mail.created_at };
    const decision = decideAfterFailure(failure, history, new Date(), timings);
    if (decision.outcome !== 'postpone') delivery.serverAway = 0;
    else if (decision.serverAway) {
      delivery.serverAway += 1;
      delivery.pausedUntilMs = performance.now() + pauseMs(delivery);
    }
    return decision;
  }
}

async function settleWithin({ running }: Delivery, timeoutMs: number): Promise<void> {
  await Promise.race([Promise.allSettled(running), delay(timeoutMs, undefined, { ref: false })]);
}
