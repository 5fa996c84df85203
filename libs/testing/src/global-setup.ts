import { startPostgres } from '@scheduling/embedded';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { chooseServers } from './choose-servers.ts';

interface Postgres {
  url(database: string): string;
  stop(): Promise<void>;
}

/** Starts the one Postgres of a test run and returns what ends it. Files share the server, never a database. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers = await chooseServers(process.env['TEST_WITH'], (line) => process.stderr.write(line));
  const postgres = servers === 'containers' ? await startContainer() : await startEmbedded();
  project.provide('servers', servers);
  project.provide('postgresUrl', postgres.url('database'));
  return () => postgres.stop();
}

async function startContainer(): Promise<Postgres> {
  const { startPostgresContainer } = await import('./containers/postgres-container.ts');
  return startPostgresContainer();
}

async function startEmbedded(): Promise<Postgres> {
  const dataDir = await mkdtemp(join(tmpdir(), 'scheduling-test-'));
  const postgres = await startPostgres({ dataDir, durable: false });
  return {
    url: (database) => postgres.url(database),
    stop: async () => {
      await postgres.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
