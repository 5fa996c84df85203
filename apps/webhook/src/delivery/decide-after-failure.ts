import type { PostResult } from '../endpoint/post.ts';

/** The event is sent again, or the webhook is disabled. */
export type FailureDecision =
  | { outcome: 'retry'; afterMs: number; reason: string }
  | { outcome: 'disable'; reason: string };

const gone = 410;
/**
 * A pause is this much longer or shorter, at most, so that webhooks that failed together are not tried again together.
 */
const jitter = 0.1;
const longestRetryAfterMs = 24 * 60 * 60 * 1_000;

/**
 * What follows when an event could not be delivered. The endpoint may ask for a longer pause (Retry-After), of a day at
 * most. After the last attempt, or if it says that it is gone (410), the webhook is disabled.
 *
 * @param failedAttempts how often this event had failed before
 * @param random from 0 to 1
 */
export function decideAfterFailure(
  result: PostResult,
  failedAttempts: number,
  retriesMs: readonly number[],
  random = Math.random(),
): FailureDecision {
  const reason = reasonOf(result);
  const pauseMs = retriesMs[failedAttempts];
  if (pauseMs === undefined || ('status' in result && result.status === gone)) return { outcome: 'disable', reason };
  const askedMs = 'status' in result ? Math.min((result.retryAfterSeconds ?? 0) * 1_000, longestRetryAfterMs) : 0;
  return {
    outcome: 'retry',
    afterMs: Math.max(askedMs, Math.round(pauseMs * (1 + jitter * (2 * random - 1)))),
    reason,
  };
}

/** A code: the status, or why there was none. */
export function reasonOf(result: PostResult): string {
  return 'status' in result ? String(result.status) : result.error;
}

export function isDelivered(result: PostResult): boolean {
  return 'status' in result && result.status >= 200 && result.status < 300;
}
