import { randomUUID } from 'node:crypto';
import { Client, escapeIdentifier } from 'pg';
import { inject } from 'vitest';

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
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const client = new Client({ connectionString: urlOf(postgresUrl, 'postgres') });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
  return urlOf(postgresUrl, name);
}

function urlOf(postgresUrl: string, database: string): string {
  const url = new URL(postgresUrl);
  url.pathname = `/${database}`;
  return url.href;
}
