import type { DeliveryTimings } from '@scheduling/delivery';

/** Every duration of the delivery, in milliseconds. Tests shorten them. */
export interface MailTimings extends DeliveryTimings {
  /** How long the server may take for one reply. */
  replyMs: number;
  /** The first delay after a temporary refusal; each further one is twice as long, up to the longest. */
  firstRetryMs: number;
  longestRetryMs: number;
  /** How long after a mail is stored temporary failures are retried. */
  giveUpMs: number;
  /** If the connection drops after DATA, the server may already have the mail. It is retried once, after this delay. */
  uncertainRetryMs: number;
  /** The quotas count the mails of one such period. The periods follow each other and begin at full hours. */
  quotaWindowMs: number;
}

const second = 1_000;
const minute = 60 * second;

/** The clean-up deletes what the quotas no longer count. */
export const quotaWindowMs = 60 * minute;

export const defaultTimings: MailTimings = {
  pollMs: 5 * second,
  leaseMs: 15 * second,
  attemptMs: 4 * minute,
  replyMs: 2 * minute,
  firstRetryMs: second,
  longestRetryMs: 10 * minute,
  giveUpMs: 24 * 60 * minute,
  uncertainRetryMs: 10 * minute,
  quotaWindowMs,
  firstPauseMs: 250,
  longestPauseMs: 5 * second,
  stopMs: 4 * second,
};
