import type { MailTimings } from './timings.ts';

/** What is known about a failed attempt. */
export interface Failure {
  error: unknown;
  /** A session with the server was established, so the server itself is not down. */
  connected: boolean;
  /** The whole message was written: the server may have accepted it. */
  handedOver: boolean;
  /** This process aborted the attempt because it is stopping. */
  stopped: boolean;
}

/** The mail's earlier attempts. */
export interface History {
  attempts: number;
  uncertain: boolean;
  createdAt: Date;
}

/** What happens to the mail. `reason` never contains an address or the server's text: it is kept and logged. */
export type FailureDecision =
  | { outcome: 'retry'; afterMs: number; reason: string }
  /** The server may have it: one more attempt, after a long delay. */
  | { outcome: 'retry-once'; afterMs: number; reason: string }
  /** Not the mail's fault: it keeps its place in the queue. */
  | { outcome: 'postpone'; reason: string; serverAway: boolean }
  | { outcome: 'give-up'; reason: string };

/** Rejections of the login, not of the mail, though some servers send them late. */
export const loginRefusals = new Set([530, 534, 535, 538]);
const mailCommands = new Set(['MAIL FROM', 'RCPT TO', 'DATA']);

/**
 * A 5xx answer to the mail is permanent. A 4xx answer, or a connection lost before the mail was written, is retried
 * with increasing delays for 24 hours. A connection lost after it was written is retried once. A server that cannot be
 * reached, or rejects the login, only delays the mail.
 */
export function decideAfterFailure(failure: Failure, mail: History, now: Date, timings: MailTimings): FailureDecision {
  const { responseCode, command, code } = failure.error as { responseCode?: number; command?: string; code?: string };
  const reason = [code, command, responseCode].filter(Boolean).join(' ') || 'unknown';
  if (failure.handedOver && !responseCode) {
    if (mail.uncertain) return { outcome: 'give-up', reason: `uncertain twice: ${reason}` };
    return { outcome: 'retry-once', afterMs: timings.uncertainRetryMs, reason: `uncertain: ${reason}` };
  }
  if (failure.stopped) return { outcome: 'postpone', reason: 'stopped', serverAway: false };
  if (isPermanent(command, responseCode, code)) return { outcome: 'give-up', reason };
  if (now.getTime() - mail.createdAt.getTime() > timings.giveUpMs)
    return { outcome: 'give-up', reason: `too late: ${reason}` };
  if (!failure.connected || (responseCode && loginRefusals.has(responseCode)))
    return { outcome: 'postpone', reason, serverAway: true };
  const afterMs = Math.min(timings.longestRetryMs, timings.firstRetryMs * 2 ** Math.min(mail.attempts, 30));
  return { outcome: 'retry', afterMs, reason };
}

function isPermanent(command = '', responseCode: number | undefined, code: string | undefined): boolean {
  if (responseCode) return responseCode >= 500 && mailCommands.has(command) && !loginRefusals.has(responseCode);
  // Detected before anything was sent: an address that cannot be written, or a mail that is larger than the server
  // accepts.
  return (code === 'EENVELOPE' && command === 'API') || (code === 'EMESSAGE' && command === 'MAIL FROM');
}
