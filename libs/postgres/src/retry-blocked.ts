import { FatalError, type Logger } from '@scheduling/runtime';
import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseError } from 'pg';

export interface BlockedOptions {
  set: string;
  migration: string;
  /** From the first attempt until an attempt that fails is the last. */
  patienceMs: number;
  logger: Logger;
}

const blockedStates = new Set([
  '40P01', // deadlock_detected
  '55P03', // lock_not_available: lock_timeout
]);

const firstPauseMs = 1_000;
/** Each attempt can delay requests, so most of the time there is none. */
const longestPauseMs = 10_000;

/**
 * Runs a migration again when another session holds a lock that it needs.
 *
 * @throws FatalError if that has not ended in time
 */
export async function retryBlocked(
  run: () => Promise<void>,
  { set, migration, patienceMs, logger }: BlockedOptions,
): Promise<void> {
  const beganMs = performance.now();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof DatabaseError && blockedStates.has(error.code ?? ''))) throw error;
      const waitedMs = performance.now() - beganMs;
      if (waitedMs >= patienceMs)
        throw new FatalError(describeBlocked({ set, migration, attempt, waitedMs }), { cause: error });
      logger.warn(
        { err: error, set, migration, attempt },
        'another session holds a lock that the migration needs, retrying',
      );
    }
    await delay(pauseMs(attempt));
  }
}

/**
 * Doubles from 1 s to 10 s, with a random part of half of it, so that it does not coincide with work that is repeated
 * periodically.
 */
function pauseMs(attempt: number): number {
  return Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs) * (0.5 + Math.random() / 2);
}

function describeBlocked({
  set,
  migration,
  attempt,
  waitedMs,
}: Pick<BlockedOptions, 'set' | 'migration'> & { attempt: number; waitedMs: number }): string {
  return (
    `the migration ${set}/${migration} did not get its locks in ${attempt} attempts and ${Math.round(waitedMs / 1_000)} s, because other sessions hold them, ` +
    'such as a pg_dump or another long transaction. As a superuser, find them with: SELECT pid, usename, application_name, state, xact_start, query ' +
    'FROM pg_stat_activity WHERE datname = current_database() ORDER BY xact_start. Wait until they have ended, or end them, and run migrate again'
  );
}
