import { childrenOf, type PostgresServer, processIsAlive, signalProcess, withClient } from '@scheduling/embedded';
import { whilePaused } from '@scheduling/testing/while-paused';
import pLimit from 'p-limit';
import type { Disk } from './disk.ts';

/** Postgres with the databases of all services. */
export interface Databases extends AsyncDisposable {
  createDatabase(name: string): Promise<string>;
  /** The address of a database for a superuser, past the proxies. */
  url(database: string): string;
  /** To which new connections of the services lead. */
  readonly ports: readonly number[];
}

/** A single server. */
export interface DatabaseServer extends Databases {
  /** `fast` ends the sessions and writes everything to disk; `immediate` ends at once, and the next start recovers. */
  restart(mode: 'fast' | 'immediate'): Promise<void>;
  /** Ends the sessions of all services. */
  terminateBackends(): Promise<void>;
  /**
   * Does something while there is no room on the disk. If Postgres has ended meanwhile, it is started again. False if
   * the disk cannot be filled.
   */
  whileDiskFull(action: () => Promise<unknown>): Promise<boolean>;
  /** Does something while every process of Postgres hangs. */
  whileHanging(action: () => Promise<unknown>): Promise<void>;
}

export async function createDatabaseServer(
  disk: Disk,
  start: (port?: number) => Promise<PostgresServer>,
): Promise<DatabaseServer> {
  let server = await start();
  const { port } = server;
  // Two faults may want the same server.
  const oneByOne = pLimit(1);
  return {
    createDatabase: server.createDatabase,
    url: (database) => server.url(database),
    ports: [port],
    restart: (mode) =>
      oneByOne(async () => {
        if (mode === 'fast') await server.stop();
        else signalProcess(server.pid, 'SIGQUIT');
        await server.exited;
        server = await start(port);
      }),
    terminateBackends: () =>
      oneByOne(() =>
        withClient(server.url('postgres'), async (client) => {
          await client.query(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
          );
        }),
      ),
    whileDiskFull: (action) =>
      oneByOne(async () => {
        if (!(await disk.fill())) return false;
        await action();
        await disk.free();
        if (!(await processIsAlive(server.pid))) server = await start(port);
        return true;
      }),
    whileHanging: (action) =>
      oneByOne(async () => void (await whilePaused([server.pid, ...(await childrenOf(server.pid))], action))),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
