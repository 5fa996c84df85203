import type { PostgresPool } from 'kysely';
import { DatabaseError, type PoolClient } from 'pg';
import { noteSent, type Traced } from './statement-span.ts';

interface NamedStatement {
  name: string;
  text: string;
  value: string;
}

/**
 * Runs a statement with one parameter on a free connection. Postgres parses and plans a statement with a name once per connection.
 *
 * @param calls those that the statement makes
 */
export async function runNamed<Row extends object>(pool: PostgresPool, { name, text, value }: NamedStatement, calls: readonly Traced[]): Promise<Row[]> {
  const client = (await pool.connect()) as PoolClient;
  let isLost = false;
  noteSent(calls);
  try {
    const { rows } = await client.query<Row>({ name, text, values: [value] });
    return rows;
  } catch (error) {
    isLost = !(error instanceof DatabaseError) || error.severity === 'FATAL';
    throw error;
  } finally {
    client.release(isLost);
  }
}
