import { withClient } from '@scheduling/embedded';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Executes statements in the database that belongs to no service. Their commits do not wait for a standby. */
export async function asSuperuser({ info, dataDir }: TestStack, ...statements: string[]): Promise<void> {
  const url = new URL('/postgres', info.databases.calendar);
  url.username = 'scheduling';
  url.password = (await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim();
  await withClient(url.href, async (client) => {
    await client.query('SET synchronous_commit = local');
    for (const statement of statements) await client.query(statement);
  });
}
