import type { Pool, PoolClient } from 'pg';
import { commitNothing } from './commit-nothing.ts';
import { requireWritable } from './server-watch.ts';

/** Held by one process at a time. Disposal releases it. */
export interface Leadership extends AsyncDisposable {
  /** Whether this process holds it, as far as it knows. */
  readonly held: boolean;
  /**
   * Acquires it if it is free, and confirms it now and then if this process holds it. Rejects if the database does not
   * answer, or does not accept writes; then this process does not hold it any more.
   */
  acquire(): Promise<boolean>;
}

/** How long it counts without having been confirmed. */
const confirmedMs = 2_000;

/**
 * Leadership by a session advisory lock: it is released when the session ends, so a leader whose process or connection
 * dies loses it. A standby grants such locks, too, and so does a primary that has been replaced and does not know it. So
 * the leader also commits something, which a standby refuses, and which a primary that has lost its synchronous standby
 * never finishes.
 *
 * @param lock any number that nothing else in the service's database uses as an advisory lock
 * @param onLost called when the session has ended
 */
export function createLeadership(pool: Pool, lock: number, onLost: () => void = () => undefined): Leadership {
  let session: PoolClient | undefined;
  let confirmedAtMs = Number.NEGATIVE_INFINITY;

  /** Closes the connection, which releases the lock. */
  function resign(): void {
    session?.release(true);
    session = undefined;
  }

  async function confirm(holder: PoolClient): Promise<void> {
    const askedMs = performance.now();
    if (askedMs - confirmedAtMs < confirmedMs) return;
    await confirmWrites(holder);
    confirmedAtMs = askedMs;
  }

  /** Undefined if another process holds it. */
  async function lockSession(): Promise<PoolClient | undefined> {
    const candidate = await pool.connect();
    try {
      const { rows } = await candidate.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [lock]);
      if (rows[0]?.locked === true) {
        await confirmWrites(candidate);
        return candidate;
      }
    } catch (error) {
      candidate.release(true);
      throw error;
    }
    candidate.release();
    return undefined;
  }

  return {
    get held() {
      return session !== undefined;
    },
    acquire: async () => {
      if (session !== undefined) {
        const holder = session;
        try {
          await confirm(holder);
        } catch (error) {
          if (session === holder) resign();
          throw error;
        }
        return session === holder;
      }
      const askedMs = performance.now();
      const candidate = await lockSession();
      if (candidate === undefined) return false;
      session = candidate;
      confirmedAtMs = askedMs;
      // Never removed: an abandoned connection may still emit its end.
      candidate.on('error', () => {
        if (session !== candidate) return;
        resign();
        onLost();
      });
      return true;
    },
    [Symbol.asyncDispose]: () => {
      resign();
      return Promise.resolve();
    },
  };
}

async function confirmWrites(client: PoolClient): Promise<void> {
  await requireWritable(client);
  await commitNothing(client);
}
