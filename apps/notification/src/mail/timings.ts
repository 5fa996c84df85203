/** Every duration of the delivery, in milliseconds. Tests shorten them. */
export interface DeliveryTimings {
  /** How often due mails are looked for when no commit of this process wakes the delivery. */
  pollMs: number;
  /** A delivery that died gives its mails back after this; one that lives renews its leases three times as often. */
  leaseMs: number;
  attemptMs: number;
  /** How long the server may take for one reply. */
  replyMs: number;
  /** The first delay after a temporary refusal; each further one is twice as long, up to the longest. */
  firstRetryMs: number;
  longestRetryMs: number;
  /** From the storing of a mail until nothing temporary is waited for any more. */
  giveUpMs: number;
  /** After a loss behind DATA the server may have the mail: it is sent once more, this late, and then never again. */
  uncertainRetryMs: number;
  /** Nothing is sent for this long when the server cannot be reached; twice as long each time, up to the longest. */
  firstPauseMs: number;
  longestPauseMs: number;
  /** How long a stop waits for what is being sent. */
  stopMs: number;
}

const second = 1_000;
const minute = 60 * second;

export const defaultTimings: DeliveryTimings = {
  pollMs: second,
  leaseMs: 15 * second,
  attemptMs: 4 * minute,
  replyMs: 2 * minute,
  firstRetryMs: second,
  longestRetryMs: 10 * minute,
  giveUpMs: 24 * 60 * minute,
  uncertainRetryMs: 10 * minute,
  firstPauseMs: 250,
  longestPauseMs: 5 * second,
  stopMs: 4 * second,
};
