import type { DeliveryTimings } from '@scheduling/delivery';

/** Every duration of the delivery, in milliseconds. Tests shorten them. */
export interface WebhookTimings extends DeliveryTimings {
  /** After how long without success one lease is given back, so that others have their turn. */
  turnMs: number;
  /** The pauses between the attempts to send one event; there is one attempt more than there are pauses. */
  retriesMs: number[];
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

export const defaultTimings: WebhookTimings = {
  pollMs: second,
  leaseMs: 10 * second,
  attemptMs: minute,
  turnMs: 20 * second,
  retriesMs: [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour],
  firstPauseMs: 250,
  longestPauseMs: 5 * second,
  stopMs: 4 * second,
};
