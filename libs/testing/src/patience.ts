import { DomainError } from '@scheduling/errors';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Far longer than anything takes here: load on a shared machine must not make a test fail. A required time limit is
 * tested with a limit of its own.
 */
export const patienceMs = 30_000;

/**
 * The options of a client whose calls have that long, and of a database that is waited for that long. In the services
 * they have 2 and 1.5 s.
 */
export const longTimeout = { timeoutMs: patienceMs };

const tooSlow = new Set(['service.unavailable', 'database.unavailable']);

/** Whether a call failed because the service or its database took too long. */
export function isTooSlow(error: unknown): boolean {
  return error instanceof DomainError && tooSlow.has(error.code);
}

/**
 * Retries for up to 30 s while the service or its database is too slow: a call waits 1.5 s for its turn, and as long
 * for a connection, and here client and service share one thread. A call that failed so may still be executed, even
 * after its retry, so use this only where that changes nothing. Deadlocks are retried as well, so a test that could
 * cause one counts them at the end.
 */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  const givesUpMs = performance.now() + patienceMs;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isTooSlow(error) || performance.now() > givesUpMs) throw error;
    }
    await delay(100);
  }
}
