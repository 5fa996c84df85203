import type { Logger } from '@scheduling/runtime';
import { randomUUID } from 'node:crypto';
import { Client, escapeIdentifier } from 'pg';
import { inject } from 'vitest';
import { testLogger } from './logger.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the test run's Postgres, with `database` in place of a database's name. */
    postgresUrl: string;
  }
}

/**
 * Creates an empty database in the test run's Postgres and returns its address. It is deleted with the server.
 *
 * @param postgresUrl for a global setup, to which nothing is injected
 */
export async function createTestDatabase(postgresUrl = inject('postgresUrl')): Promise<string> {
  return createDatabase(postgresUrl, 'template1');
}

/**
 * Creates a database with the schema of a service and returns its address. It is a copy of one that is migrated once in
 * a test run.
 *
 * @param migrate brings the database of this address up to date, and closes its connections
 * @param postgresUrl for a global setup, to which nothing is injected
 */
export async function createMigratedDatabase(
  service: string,
  migrate: (url: string, logger: Logger) => Promise<unknown>,
  postgresUrl = inject('postgresUrl'),
): Promise<string> {
  const template = `template_${service}`;
  await onServer(postgresUrl, async (client) => {
    // Held until the connection ends: the other test files wait for the one that migrates.
    await client.query('SELECT pg_advisory_lock(hashtext($1))', [template]);
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [template]);
    if (rowCount !== 0) return;
    const url = await createTestDatabase(postgresUrl);
    await migrate(url, testLogger(service));
    await client.query(
      `ALTER DATABASE ${escapeIdentifier(new URL(url).pathname.slice(1))} RENAME TO ${escapeIdentifier(template)}`,
    );
  });
  return createDatabase(postgresUrl, template);
}

async function createDatabase(postgresUrl: string, template: string): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await onServer(postgresUrl, (client) =>
    client.query(`CREATE DATABASE ${escapeIdentifier(name)} TEMPLATE ${escapeIdentifier(template)}`),
  );
  return urlOf(postgresUrl, name);
}

async function onServer(postgresUrl: string, use: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: urlOf(postgresUrl, 'postgres') });
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}

function urlOf(postgresUrl: string, database: string): string {
  const url = new URL(postgresUrl);
  url.pathname = `/${database}`;
  return url.href;
}
