import { Pool } from 'pg';
import type { DatabaseService, StackInfo } from '@scheduling/stack';
import { sharedStack } from './shared-stack.ts';

/** Pools by address. Opening a connection for each query would take longer than the query. */
const pools = new Map<string, Pool>();

/** Runs one query in a service's database. For tests of what no response shows. */
export async function query<Row extends object>(
  service: DatabaseService,
  text: string,
  values: unknown[] = [],
  stack: Pick<StackInfo, 'databases'> = sharedStack(),
): Promise<Row[]> {
  const url = stack.databases[service];
  const pool = pools.get(url) ?? createPool(url);
  pools.set(url, pool);
  return (await pool.query<Row>(text, values)).rows;
}

function createPool(connectionString: string): Pool {
  const pool = new Pool({ connectionString, max: 4, allowExitOnIdle: true });
  // Idle connections break when their server stops; the next query opens a new one.
  pool.on('error', () => undefined);
  return pool;
}
