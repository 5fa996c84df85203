import { vi } from 'vitest';
import { patienceMs } from './patience.ts';

/** Retries until the check passes, and returns its result; after 30 s fails with the check's own error. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: patienceMs, interval: 50 });
}
