import { Client } from 'pg';
import { inject } from 'vitest';
import type { DatabaseService } from '../../src/service-table.ts';
import type { StackInfo } from '../../src/stack-file.ts';

/** Runs one query in a service's database. Tests look there at what no answer shows. */
export async function query<Row extends object>(service: DatabaseService, text: string, values: unknown[] = [], stack: Pick<StackInfo, 'databases'> = inject('stack')): Promise<Row[]> {
  const client = new Client({ connectionString: stack.databases[service] });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}
