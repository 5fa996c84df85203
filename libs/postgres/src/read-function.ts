import { isRecorded } from '@scheduling/runtime';
import { type PostgresPool, type QueryExecutorProvider, sql } from 'kysely';
import { runNamed } from './run-named.ts';
import { functionStatement, inStatementSpan } from './statement-span.ts';

/**
 * A call of a SQL function, `name(request jsonb) RETURNS TABLE (…)`, STABLE and in plpgsql, which plans its statements
 * once per connection.
 */
export interface FunctionRead {
  name: string;
  request: object;
}

interface ReadPool {
  pool: PostgresPool;
  namespace: string;
}

const pools = new WeakMap<object, ReadPool>();
const untraced: readonly never[] = [];

/**
 * From now on, reads with this handle are made on any free connection of the pool.
 *
 * @param namespace the name of the database
 */
export function useReadPool(db: QueryExecutorProvider, pool: PostgresPool, namespace: string): void {
  pools.set(db, { pool, namespace });
}

/**
 * Reads with a SQL function and returns its rows, in its order. Its columns are in camelCase already. Within a
 * transaction it is a part of it. Otherwise each read is a round trip of its own, which waits for no other: reads gain
 * nothing from a common commit, and there may be as many as connections.
 */
export async function readFunction<Row extends object>(
  db: QueryExecutorProvider,
  { name, request }: FunctionRead,
): Promise<Row[]> {
  const known = pools.get(db);
  if (known !== undefined) return readFrom(known, { name, request });
  const { rows } = await sql<Row>`SELECT * FROM ${sql.id(name)}(${JSON.stringify(request)}::jsonb)`.execute(db);
  return rows;
}

function readFrom<Row extends object>({ pool, namespace }: ReadPool, { name, request }: FunctionRead): Promise<Row[]> {
  const statement = { name, text: `SELECT * FROM ${name}($1)`, value: JSON.stringify(request) };
  if (!isRecorded()) return runNamed(pool, statement, untraced);
  return inStatementSpan(functionStatement(namespace, name), (span) => runNamed(pool, statement, [{ span }]));
}
