import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { type DatabaseService, databaseServices } from '@scheduling/stack';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';

/** Takes a consistent copy of databases, by default of all, and returns a function that restores it. */
export async function backUpDatabases(
  stack: TestStack,
  services: readonly DatabaseService[] = databaseServices,
): Promise<() => Promise<void>> {
  await closeDatabases(stack, services, async (execute, name) =>
    execute(`CREATE DATABASE ${name}_backup TEMPLATE ${name}`),
  );
  return () =>
    closeDatabases(stack, services, async (execute, name) => {
      await execute(`DROP DATABASE ${name}`);
      await execute(`ALTER DATABASE ${name}_backup RENAME TO ${name}`);
    });
}

/** Runs some work on each of these databases while no service can use any of them. */
async function closeDatabases(
  { info, dataDir }: TestStack,
  services: readonly DatabaseService[],
  work: (execute: (statement: string) => Promise<unknown>, name: string) => Promise<unknown>,
): Promise<void> {
  const names = services.map((service) => new URL(info.databases[service]).pathname.slice(1));
  const address = new URL('/postgres', info.databases.customer);
  address.username = 'scheduling';
  address.password = (await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim();
  const administrator = new Client({ connectionString: address.href });
  await administrator.connect();
  try {
    for (const name of names) await administrator.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await administrator.query('SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = ANY ($1)', [
      names,
    ]);
    for (const name of names) await work((statement) => administrator.query(statement), name);
    for (const name of names) await administrator.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
  } finally {
    await administrator.end();
  }
}
