import { Client } from 'pg';
import type { MigrationSet } from './migration-set.ts';
import { readSchemaState, type SchemaState } from './schema-state.ts';

/** In total less than the time that a caller waits. */
const connectMs = 700;
const queryMs = 300;

/**
 * Reads a database's schema and clock over a separate connection, because the pool provides none while the schema is
 * outdated. Changes nothing; rejects if the database does not answer.
 */
export async function inspectDatabase(
  url: string,
  sets: readonly MigrationSet[],
): Promise<SchemaState & { time: Date }> {
  const client = new Client({
    connectionString: url,
    application_name: 'inspection',
    connectionTimeoutMillis: connectMs,
    query_timeout: queryMs,
    options: '-c default_transaction_read_only=on',
  });
  // A lost connection also emits an event.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const state = await readSchemaState(client, sets);
    const { rows } = await client.query<{ time: Date }>('SELECT clock_timestamp() AS time');
    return { ...state, time: rows[0]!.time };
  } finally {
    // Not awaited: ending a connection that was never established does not complete.
    void client.end();
  }
}
