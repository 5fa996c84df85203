import { startPostgres } from '@scheduling/embedded';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerKind } from './choose-servers.ts';
import type { TestPostgres } from './test-postgres.ts';

/** Starts a Postgres for a global setup: test files use databases of the test run's Postgres instead. */
export async function startTestPostgres(servers: ServerKind): Promise<TestPostgres> {
  if (servers === 'embedded') return startEmbedded();
  const { startPostgresContainer } = await import('./containers/postgres-container.ts');
  return startPostgresContainer();
}

async function startEmbedded(): Promise<TestPostgres> {
  const dataDir = await mkdtemp(join(tmpdir(), 'scheduling-test-'));
  const postgres = await startPostgres({ dataDir, durable: false });
  return {
    url: (database) => postgres.url(database),
    [Symbol.asyncDispose]: async () => {
      await postgres.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
