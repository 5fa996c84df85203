import { type QueryExecutorProvider, sql } from 'kysely';
import type { FunctionCall, FunctionCaller } from './function-caller.ts';

const callers = new WeakMap<object, FunctionCaller>();

/** From now on, calls with this handle are made by the caller. */
export function useFunctionCaller(db: QueryExecutorProvider, caller: FunctionCaller): void {
  callers.set(db, caller);
}

/**
 * Calls a SQL function, `name(request jsonb) RETURNS jsonb`, and returns its answer. Within a transaction it is a part
 * of it. Otherwise it is a transaction, which it may share with other calls of the same CRM that wait at the same
 * moment, each with its own outcome.
 */
export async function callFunction<Answer>(db: QueryExecutorProvider, call: FunctionCall): Promise<Answer> {
  const caller = callers.get(db);
  if (caller !== undefined) return (await caller(call)) as Answer;
  const { rows } = await sql<{
    answer: Answer;
  }>`SELECT ${sql.id(call.name)}(${JSON.stringify(call.request)}::jsonb) AS answer`.execute(db);
  return rows[0]!.answer;
}

/** Makes the calls of one SQL function in their order, as one statement of the transaction. */
export async function callFunctionForEach(
  tx: QueryExecutorProvider,
  name: string,
  requests: FunctionCall['request'][],
): Promise<void> {
  await sql`SELECT ${sql.id(name)}(request) FROM jsonb_array_elements(${JSON.stringify(requests)}::jsonb) AS each(request)`.execute(
    tx,
  );
}
