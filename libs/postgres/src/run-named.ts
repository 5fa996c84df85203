import type { PostgresPool } from 'kysely';
import { DatabaseError, type PoolClient } from 'pg';
import { isTooLate, onClockOf } from './call-deadline.ts';
import { noteSent, type Traced } from './statement-span.ts';

interface NamedStatement {
  name: string;
  text: string;
  /** The first parameter. */
  value: string;
  /**
   * The second parameter, if there is one: a moment by the clock of this process, which becomes the same by that of the
   * database.
   */
  deadlineMs?: number;
}

/**
 * Runs a statement on a free connection. Postgres parses and plans a statement with a name once per connection.
 *
 * @param calls those that the statement makes
 */
export async function runNamed<Row extends object>(
  pool: PostgresPool,
  { name, text, value, deadlineMs }: NamedStatement,
  calls: readonly Traced[],
): Promise<Row[]> {
  const client = (await pool.connect()) as PoolClient;
  let isLost = false;
  noteSent(calls);
  try {
    const values = deadlineMs === undefined ? [value] : [value, onClockOf(client, deadlineMs)];
    const { rows } = await client.query<Row>({ name, text, values });
    return rows;
  } catch (error) {
    // After one that came too late, the clock is read again, by the connection that takes its place: that of the
    // database may have been set.
    isLost = !(error instanceof DatabaseError) || error.severity === 'FATAL' || isTooLate(error);
    throw error;
  } finally {
    client.release(isLost);
  }
}
