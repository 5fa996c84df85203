import { vi } from 'vitest';

/** Far more than anything takes here: a machine that others use as well must not decide a test. A rule that bounds a time is tested with a bound of its own. */
const patienceMs = 30_000;

/** Asks again until the check passes, and returns what it returned; after 30 s fails with the check's own error. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: patienceMs, interval: 20 });
}
