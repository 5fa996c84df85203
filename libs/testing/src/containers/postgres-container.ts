import { freePort } from '@scheduling/embedded';
import { PostgreSqlContainer } from '@testcontainers/postgresql';
import { randomUUID } from 'node:crypto';

export interface PostgresContainer extends AsyncDisposable {
  /** The address of a database, with user and password. */
  url(database: string): string;
  stop(): Promise<void>;
}

const serverPort = 5432;

/** Postgres from the image that production runs, with settings for many databases whose data may be lost. */
export async function startPostgresContainer(): Promise<PostgresContainer> {
  const container = await new PostgreSqlContainer('postgres:18-alpine')
    .withDatabase('postgres')
    .withPassword(randomUUID())
    // Not one that the engine picks: it does not see those that this machine has given to outgoing connections.
    .withExposedPorts({ container: serverPort, host: await freePort() })
    .withCommand(['postgres', ...['max_connections=200', 'timezone=UTC', 'fsync=off', 'full_page_writes=off', 'synchronous_commit=off'].flatMap((setting) => ['-c', setting])])
    .start();
  const stop = async (): Promise<void> => {
    await container.stop();
  };
  return {
    url: (database) => {
      const url = new URL(container.getConnectionUri());
      url.pathname = `/${database}`;
      return url.href;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
