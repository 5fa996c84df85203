import type { TestProject } from 'vitest/node';
import { chooseServers } from './choose-servers.ts';
import { startTestPostgres } from './postgres.ts';

/**
 * Starts the one Postgres of a test run and returns a function that stops it. Files share the server, never a database.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers = await chooseServers(process.env['TEST_WITH'], (line) => process.stderr.write(line));
  const postgres = await startTestPostgres(servers);
  project.provide('servers', servers);
  project.provide('postgresUrl', postgres.url('database'));
  return async () => postgres[Symbol.asyncDispose]();
}
