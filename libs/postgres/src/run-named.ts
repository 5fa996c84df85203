import type { PostgresPool } from 'kysely';
import { DatabaseError, type PoolClient } from 'pg';

/** Runs a statement with one parameter on a free connection. Postgres parses and plans a statement with a name once per connection. */
export async function runNamed<Row extends object>(pool: PostgresPool, { name, text, value }: { name: string; text: string; value: string }): Promise<Row[]> {
  const client = (await pool.connect()) as PoolClient;
  let isLost = false;
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
