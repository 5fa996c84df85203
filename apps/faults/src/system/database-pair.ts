import {
  createStandby,
  type PostgresServer,
  signalProcess,
  startPostgres,
  waitUntil,
  withClient,
} from '@scheduling/embedded';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Databases } from './database-server.ts';

/**
 * A primary that answers a commit when its standby has it, and a switch by which the services reach one of the two. The
 * switch leaves existing connections where they are.
 */
export interface DatabasePair extends Databases {
  /** Of the primary. `fast` sends everything to the standby first. */
  end(mode: 'kill' | 'fast'): Promise<void>;
  /** Makes the standby the primary, which then commits alone. The one before is left as it is, and may still run. */
  promote(): Promise<void>;
  /** Leads new connections to the present primary, or to its standby. */
  switchTo(role: 'primary' | 'standby'): void;
  /** Ends the former primary, if it still runs, and replaces it with a new standby, a copy of the present primary. */
  rejoin(): Promise<void>;
  /** Kills the standby, does something, and starts it again. Nothing can be committed until it follows the primary. */
  whileStandbyDown(action: () => Promise<unknown>): Promise<void>;
}

const standbyName = 'standby';
const settings = {
  synchronous_commit: 'on',
  // More than is written while a standby is away.
  wal_keep_size: '512MB',
};
const followMs = 60_000;

/** Starts both. Each new standby has a folder of its own. */
export async function createDatabasePair(folder: string): Promise<DatabasePair> {
  let made = 0;
  const start = (dataDir: string, port?: number): Promise<PostgresServer> =>
    startPostgres({ dataDir, port, durable: false, settings });
  const nextFolder = (): string => join(folder, String((made += 1)));
  let primary = await start(nextFolder());
  let former: PostgresServer | undefined;
  const addStandby = async (): Promise<PostgresServer> => {
    const dataDir = nextFolder();
    await createStandby(primary, { dataDir, name: standbyName });
    const added = await start(dataDir);
    await waitForStandby(primary, 'streaming');
    await setSynchronousStandby(primary);
    return added;
  };
  let standby: PostgresServer | undefined = await addStandby();
  let { port } = primary;
  return {
    createDatabase: primary.createDatabase,
    url: (database) => primary.url(database),
    get ports() {
      return [port];
    },
    end: async (mode) => {
      if (mode === 'fast') await primary.stop();
      else await kill(primary);
    },
    promote: async () => {
      await query(standby!, 'SELECT pg_promote()');
      [former, primary, standby] = [primary, standby!, undefined];
    },
    switchTo: (role) => {
      port = (role === 'primary' ? primary : standby!).port;
    },
    rejoin: async () => {
      await kill(former!);
      // Its log stays.
      await rm(join(former!.dataDir, 'postgres'), { recursive: true });
      standby = await addStandby();
    },
    whileStandbyDown: async (action) => {
      const { dataDir, port: ownPort } = standby!;
      await kill(standby!);
      await action();
      standby = await start(dataDir, ownPort);
      await waitForStandby(primary, 'sync');
    },
    [Symbol.asyncDispose]: async () => {
      const servers = [primary, standby, former].filter((server) => server !== undefined);
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

async function kill({ pid, exited }: PostgresServer): Promise<void> {
  signalProcess(pid, 'SIGKILL');
  await exited;
}

/** From its end on, commits wait for the standby. One that is promoted has no such setting: it is not part of the copy. */
async function setSynchronousStandby(primary: PostgresServer): Promise<void> {
  await query(primary, `ALTER SYSTEM SET synchronous_standby_names = '${standbyName}'`);
  await query(primary, 'SELECT pg_reload_conf()');
  await waitForStandby(primary, 'sync');
  // Commits wait once the checkpointer has read the setting, which it does between two checkpoints. The first one may be
  // in progress, and what pg_stat_replication says does not depend on it.
  for (let checkpoints = 1; checkpoints <= 2; checkpoints += 1) await query(primary, 'CHECKPOINT');
}

/** Until it receives what is written, or is the one for which commits are to wait. */
async function waitForStandby(primary: PostgresServer, state: 'streaming' | 'sync'): Promise<void> {
  const isThere = async (): Promise<boolean> =>
    (await query(primary, `SELECT FROM pg_stat_replication WHERE '${state}' IN (state, sync_state)`)) === 1;
  await waitUntil(isThere, { what: 'the standby to follow', timeoutMs: followMs });
}

/** Returns the number of rows. */
function query(server: PostgresServer, text: string): Promise<number | null> {
  return withClient(server.url('postgres'), async (client) => (await client.query(text)).rowCount);
}
