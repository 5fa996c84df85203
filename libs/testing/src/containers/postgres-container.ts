import { freePort } from '@scheduling/embedded';
import { PostgreSqlContainer } from '@testcontainers/postgresql';
import { randomUUID } from 'node:crypto';
import type { TestPostgres } from '../test-postgres.ts';

const serverPort = 5432;

/** Postgres from the image used in production, with settings for many databases whose data may be lost. */
export async function startPostgresContainer(): Promise<TestPostgres> {
  const container = await new PostgreSqlContainer('postgres:18-alpine')
    .withDatabase('postgres')
    .withPassword(randomUUID())
    // Not a port picked by the engine: it does not see the ports that this machine uses for outgoing connections.
    .withExposedPorts({ container: serverPort, host: await freePort() })
    .withCommand([
      'postgres',
      ...['max_connections=200', 'timezone=UTC', 'fsync=off', 'full_page_writes=off', 'synchronous_commit=off'].flatMap(
        (setting) => ['-c', setting],
      ),
    ])
    .start();
  return {
    url: (database) => {
      const url = new URL(container.getConnectionUri());
      url.pathname = `/${database}`;
      return url.href;
    },
    [Symbol.asyncDispose]: async () => {
      await container.stop();
    },
  };
}
