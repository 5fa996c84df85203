import { Pool, type PoolClient, type PoolConfig } from 'pg';
import { commitNothing } from './commit-nothing.ts';
import { withOwnConnection } from './own-connection.ts';
import { disconnect, quickly } from './server-watch.ts';

/** Commits that leave nothing behind, one at a time, with a connection of their own. */
export interface SingleCommit extends AsyncDisposable {
  /** Rejects at once while the one before has not finished. */
  make(): Promise<void>;
  /** Whether there is one that was begun so long ago, and has not finished. */
  isUnfinishedAfter(ms: number): boolean;
}

interface Unfinished {
  sinceMs: number;
  /** Once it is connected. */
  client?: PoolClient;
}

/** How often the server is asked about one that does not finish. */
const examinedMs = 2_000;

/** With these, a commit may wait for a standby for hours: `statement_timeout` does not end it. */
const patient: PoolConfig = { max: 1, query_timeout: 2 ** 31 - 1 };
/** Also for a role whose other commits do not wait. */
const waitForStandby = '-c synchronous_commit=on';

/** @param config how to connect to the database */
export function createSingleCommit(config: PoolConfig): SingleCommit {
  const pool = new Pool({ ...config, ...patient, options: `${config.options ?? ''} ${waitForStandby}` });
  pool.on('error', () => undefined);
  let unfinished: Unfinished | undefined;
  let isClosed = false;

  /** If the server has finished it, the answer was lost with the way to the server. */
  async function closeIfLost(commit: Unfinished): Promise<void> {
    const { client } = commit;
    if (client === undefined) return;
    const isActive = await withOwnConnection({ ...config, ...quickly }, (own) => isSessionActive(own, client));
    if (!isActive && unfinished === commit) disconnect(client, new Error('the connection was lost'));
  }

  async function commitWith(client: PoolClient): Promise<void> {
    let failure: Error | undefined;
    try {
      if (isClosed) throw new Error('the database is closed');
      await commitNothing(client);
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      client.release(failure);
    }
  }

  return {
    make: async () => {
      if (unfinished !== undefined) throw new Error('the commit before has not finished');
      const commit: Unfinished = { sinceMs: performance.now() };
      unfinished = commit;
      const timer = setInterval(() => void closeIfLost(commit).catch(() => undefined), examinedMs).unref();
      try {
        commit.client = await pool.connect();
        await commitWith(commit.client);
      } finally {
        clearInterval(timer);
        unfinished = undefined;
      }
    },
    isUnfinishedAfter: (ms) => unfinished !== undefined && performance.now() - unfinished.sinceMs >= ms,
    [Symbol.asyncDispose]: () => {
      isClosed = true;
      if (unfinished?.client !== undefined) disconnect(unfinished.client, new Error('the database is closed'));
      return pool.end();
    },
  };
}

async function isSessionActive(own: Pick<PoolClient, 'query'>, client: PoolClient): Promise<boolean> {
  const { processID } = client as PoolClient & { processID: number };
  const { rowCount } = await own.query(`SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active'`, [processID]);
  return rowCount === 1;
}
