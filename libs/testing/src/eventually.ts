import { vi } from 'vitest';

/** Far longer than anything takes here: load on a shared machine must not make a test fail. A required time limit is tested with a limit of its own. */
const patienceMs = 30_000;

/** Retries until the check passes, and returns its result; after 30 s fails with the check's own error. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: patienceMs, interval: 50 });
}
