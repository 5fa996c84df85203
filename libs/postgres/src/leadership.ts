import type { Pool, PoolClient } from 'pg';

/** Held by one process at a time. Disposal releases it. */
export interface Leadership extends AsyncDisposable {
  /** Whether this process holds it, as far as it knows. */
  readonly held: boolean;
  /** Acquires it if it is free. Rejects if the database does not answer. */
  acquire(): Promise<boolean>;
}

/**
 * Leadership by a session advisory lock: it is released when the session ends, so a leader whose process or connection
 * dies loses it.
 *
 * @param lock any number that nothing else in the service's database uses as an advisory lock
 * @param onLost called when the session has ended
 */
export function createLeadership(pool: Pool, lock: number, onLost: () => void = () => undefined): Leadership {
  let session: PoolClient | undefined;

  /** Closes the connection, which releases the lock. */
  function resign(): void {
    session?.release(true);
    session = undefined;
  }

  return {
    get held() {
      return session !== undefined;
    },
    acquire: async () => {
      if (session !== undefined) return true;
      const candidate = await pool.connect();
      try {
        const { rows } = await candidate.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [
          lock,
        ]);
        if (rows[0]?.locked !== true) {
          candidate.release();
          return false;
        }
      } catch (error) {
        candidate.release(true);
        throw error;
      }
      session = candidate;
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
