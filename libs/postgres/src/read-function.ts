import { type PostgresPool, type QueryExecutorProvider, sql } from 'kysely';
import { runNamed } from './run-named.ts';

/** A call of a SQL function, `name(request jsonb) RETURNS TABLE (…)`, STABLE and in plpgsql, which plans its statements once per connection. */
export interface FunctionRead {
  name: string;
  request: object;
}

const pools = new WeakMap<object, PostgresPool>();

/** From now on, reads with this handle are made on any free connection of the pool. */
export function useReadPool(db: QueryExecutorProvider, pool: PostgresPool): void {
  pools.set(db, pool);
}

/**
 * Reads with a SQL function and returns its rows, in its order. Its columns are in camelCase already. Within a transaction it is a part of it. Otherwise
 * each read is a round trip of its own, which waits for no other: reads gain nothing from a common commit, and there may be as many as connections.
 */
export async function readFunction<Row extends object>(db: QueryExecutorProvider, { name, request }: FunctionRead): Promise<Row[]> {
  const pool = pools.get(db);
  if (pool !== undefined) return runNamed(pool, { name, text: `SELECT * FROM ${name}($1)`, value: JSON.stringify(request) });
  const { rows } = await sql<Row>`SELECT * FROM ${sql.id(name)}(${JSON.stringify(request)}::jsonb)`.execute(db);
  return rows;
}
