import type { PostgresPool } from 'kysely';
import { DatabaseError, type PoolClient } from 'pg';

/** A call of a SQL function, `name(request jsonb) RETURNS jsonb`. */
export interface FunctionCall {
  name: string;
  request: { crmId: string };
  /** What the function locks first. Transactions that share locks take them in this order, so that they do not deadlock. */
  locks: string;
}

/** Rejects with what the database reports for this call alone. */
export type FunctionCaller = (call: FunctionCall) => Promise<unknown>;

/** The most calls in one transaction. */
const maxBatch = 64;
/** The most characters that their requests have together: a large one is made alone, or with few others, so that small ones do not wait for its work. */
const maxBatchCharacters = 100_000;
/** How many transactions of one function and CRM run at once. More would each contain fewer calls. */
const maxRunning = 2;
/** A call that has to wait longer for a lock, in milliseconds, is made alone: those that share its transaction need not wait with it. */
const sharedLockTimeoutMs = 100;

interface Waiting extends FunctionCall {
  /** The request as JSON. */
  json: string;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** The calls of one function for one CRM. */
interface Line {
  waiting: Waiting[];
  running: number;
}

/**
 * Makes calls that wait at the same moment in one statement, which is one round trip and one commit. No call waits for others to come: a call that
 * comes alone is made alone. If the database rejects the statement, none of its calls has had an effect, and each is made alone.
 */
export function createFunctionCaller(pool: PostgresPool): FunctionCaller {
  const lines = new Map<string, Line>();

  function proceed(key: string, line: Line): void {
    while (line.running < maxRunning && line.waiting.length > 0) {
      line.running += 1;
      void makeCalls(pool, takeBatch(line.waiting)).finally(() => {
        line.running -= 1;
        proceed(key, line);
      });
    }
    if (line.running === 0) lines.delete(key);
  }

  return (call) =>
    new Promise((resolve, reject) => {
      const key = `${call.name} ${call.request.crmId}`;
      const line = lines.get(key) ?? { waiting: [], running: 0 };
      lines.set(key, line);
      line.waiting.push({ ...call, json: JSON.stringify(call.request), resolve, reject });
      // After everything that arrived together with this call.
      if (line.waiting.length === 1) setImmediate(() => proceed(key, line));
    });
}

/** Removes the calls that have waited longest, at least one. */
function takeBatch(waiting: Waiting[]): Waiting[] {
  let characters = 0;
  const end = waiting.findIndex(({ json }, index) => index === maxBatch || ((characters += json.length) > maxBatchCharacters && index > 0));
  return waiting.splice(0, end === -1 ? waiting.length : end);
}

/** Settles all of them, and never rejects. */
async function makeCalls(pool: PostgresPool, calls: Waiting[]): Promise<void> {
  if (calls.length === 1) return makeAlone(pool, calls[0]!);
  const sorted = calls.toSorted((one, other) => (one.locks < other.locks ? -1 : 1));
  try {
    const answers = await callTogether(pool, sorted);
    for (const { index, answer } of answers) sorted[index - 1]!.resolve(answer);
  } catch (error) {
    if (error instanceof DatabaseError) await Promise.all(calls.map((call) => makeAlone(pool, call)));
    else for (const { reject } of calls) reject(error);
  }
}

async function makeAlone(pool: PostgresPool, { name, json, resolve, reject }: Waiting): Promise<void> {
  try {
    const text = `SELECT ${name}($1::jsonb) AS answer`;
    const [row] = await runNamed<{ answer: unknown }>(pool, { name: `${name}_alone`, text, value: json });
    resolve(row!.answer);
  } catch (error) {
    reject(error);
  }
}

function callTogether(pool: PostgresPool, calls: Waiting[]): Promise<{ index: number; answer: unknown }[]> {
  const { name } = calls[0]!;
  const text = `
    SELECT index, ${name}(request) AS answer
      FROM set_config('lock_timeout', '${sharedLockTimeoutMs}', true), jsonb_array_elements($1) WITH ORDINALITY AS each(request, index)`;
  return runNamed(pool, { name: `${name}_together`, text, value: `[${calls.map(({ json }) => json).join(',')}]` });
}

/** Postgres parses and plans a statement with a name once per connection. */
async function runNamed<Row extends object>(pool: PostgresPool, { name, text, value }: { name: string; text: string; value: string }): Promise<Row[]> {
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
