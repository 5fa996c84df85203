import type { Client } from 'pg';
import type { MigrationSet } from './migration-set.ts';
import { inspection, withOwnConnection } from './own-connection.ts';
import { readSchemaState, type SchemaState } from './schema-state.ts';
import { isUnanswered } from './watch-statements.ts';

export interface DatabaseInspection<More> extends SchemaState {
  /** By the clock of the database. */
  time: Date;
  /** Undefined while migrations are missing, or if it could not be read in time, as while a table is locked. */
  more: More | undefined;
}

/**
 * Reads a database's schema and clock, and something more, over a connection of its own, because the pool provides none
 * while the schema is outdated or nothing can be written. Changes nothing; rejects if the database does not answer.
 */
export function inspectDatabase<More = undefined>(
  url: string,
  sets: readonly MigrationSet[],
  readMore?: (client: Client) => Promise<More>,
): Promise<DatabaseInspection<More>> {
  const config = { ...inspection(url), options: '-c default_transaction_read_only=on' };
  return withOwnConnection(config, async (client) => {
    const state = await readSchemaState(client, sets);
    const { rows } = await client.query<{ time: Date }>('SELECT clock_timestamp() AS time');
    const more = state.missing.length > 0 ? undefined : await readMore?.(client).catch(undefinedIfUnanswered);
    return { ...state, time: rows[0]!.time, more };
  });
}

function undefinedIfUnanswered(error: unknown): undefined {
  if (!isUnanswered(error)) throw error;
}
