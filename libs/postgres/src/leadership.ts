import type { Pool, PoolClient } from 'pg';

/** One process at a time has it. Disposal gives it up. */
export interface Leadership extends AsyncDisposable {
  /** Whether this process has it, as far as it knows. */
  readonly held: boolean;
  /** Takes it when nobody has it. Rejects when the database does not answer. */
  acquire(): Promise<boolean>;
}

/**
 * A leadership that is a session advisory lock: it is free again when the session ends, so a leader whose process or connection dies loses it.
 *
 * @param lock any number that nothing else in the service's database locks
 */
export function createLeadership(pool: Pool, lock: number): Leadership {
  let session: PoolClient | undefined;

  /** Destroys the connection, and with it the lock. */
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
        const { rows } = await candidate.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [lock]);
        if (rows[0]?.locked !== true) {
          candidate.release();
          return false;
        }
      } catch (error) {
        candidate.release(true);
        throw error;
      }
      session = candidate;
      // It stays for good: a connection that was given up may still report its end.
      candidate.on('error', () => {
        if (session === candidate) resign();
      });
      return true;
    },
    [Symbol.asyncDispose]: () => {
      resign();
      return Promise.resolve();
    },
  };
}
