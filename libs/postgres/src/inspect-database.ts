import { Client } from 'pg';
import type { MigrationSet } from './migration-set.ts';
import { readSchemaState, type SchemaState } from './schema-state.ts';

/** Together less than the time that a caller waits. */
const connectMs = 700;
const queryMs = 300;

/**
 * Looks at a database's schema and clock over a connection of its own, because the pool has none to give while the schema is outdated. Changes
 * nothing; rejects when the database does not answer.
 */
export async function inspectDatabase(url: string, sets: readonly MigrationSet[]): Promise<SchemaState & { time: Date }> {
  const client = new Client({
    connectionString: url,
    application_name: 'inspection',
    connectionTimeoutMillis: connectMs,
    query_timeout: queryMs,
    options: '-c default_transaction_read_only=on',
  });
  // A connection that is lost says so with an event, too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const state = await readSchemaState(client, sets);
    const { rows } = await client.query<{ time: Date }>('SELECT clock_timestamp() AS time');
    return { ...state, time: rows[0]!.time };
  } finally {
    // Not waited for: a connection that never came about does not end, either.
    void client.end();
  }
}
