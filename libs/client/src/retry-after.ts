const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
/** Timers cannot wait for longer than 24 days. */
const longestMs = 24 * 60 * 60 * 1_000;

/**
 * The wait that a Retry-After header asks for, in seconds or with an HTTP date (RFC 9110 10.2.3): in milliseconds, a
 * day at most. 0 if it is absent or neither.
 */
export function parseRetryAfter(value: string | null, nowMs: number): number {
  if (value === null) return 0;
  const askedMs = /^\d+$/.test(value)
    ? 1_000 * Number(value)
    : (httpDate.test(value) ? Date.parse(value) : Number.NaN) - nowMs;
  return Number.isNaN(askedMs) ? 0 : Math.min(Math.max(askedMs, 0), longestMs);
}
