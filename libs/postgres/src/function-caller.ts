import { type ActiveSpan, currentContext, isRecorded } from '@scheduling/runtime';
import type { PostgresPool } from 'kysely';
import pLimit, { type LimitFunction } from 'p-limit';
import { DatabaseError } from 'pg';
import { isAwaited, notAwaited } from './awaited.ts';
import { rejectAfter } from './call-deadline.ts';
import type { CommitWatch } from './commit-watch.ts';
import { runNamed } from './run-named.ts';
import { functionStatement, inStatementSpan, type Traced } from './statement-span.ts';

/** A call of a SQL function, `name(request jsonb) RETURNS jsonb`. */
export interface FunctionCall {
  name: string;
  request: { crmId: string };
  /**
   * What the function locks first. Transactions that share locks take them in this order, so that they do not deadlock.
   * Undefined if the function only reads.
   */
  locks?: string;
}

/** Rejects with what the database reports for this call alone. */
export type FunctionCaller = (call: FunctionCall) => Promise<unknown>;

/** The most calls in one transaction. */
const maxBatch = 64;
/**
 * The most characters that their requests have together: a large one is made alone, or with few others, so that small
 * ones do not wait for its work.
 */
const maxBatchCharacters = 100_000;
/** A call that has to wait longer for a lock, in milliseconds, waits apart from the others. */
const shortLockTimeoutMs = 100;
/** How many calls of one CRM wait apart for a lock: the connections are for all. */
const maxWaitingApart = 2;
/** lock_not_available */
const lockTimeout = '55P03';

interface Waiting extends FunctionCall, Traced {
  /** The request as JSON. */
  json: string;
  /** When its caller gives up, in epoch milliseconds. */
  deadlineMs: number;
  /** Aborts when it gives up earlier. */
  signal: AbortSignal | undefined;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** The calls of one function for one CRM. */
interface Line {
  waiting: Waiting[];
  isRunning: boolean;
}

/** Where the calls of one CRM are made after the database has rejected a statement. */
interface Lanes {
  /** One by one. */
  alone: LimitFunction;
  /** Those that wait for a lock. */
  apart: LimitFunction;
}

/**
 * Makes calls of one function and CRM that wait at the same moment in one statement, which is one round trip and one
 * commit; one statement at a time, because more would each contain fewer calls. No call waits for others to come. If
 * the database rejects the statement, none of its calls has had an effect, and they are made one by one, while others
 * go on. A call whose caller has given up is not made, and has no effect if the database comes to it, or gets through
 * with it, only then: an answer of the kind that the place is taken is final, because no earlier call takes it later.
 *
 * @param namespace the name of the database
 */
export function createFunctionCaller(pool: PostgresPool, namespace: string, commits: CommitWatch): FunctionCaller {
  const lines = new Map<string, Line>();
  const lanes = new Map<string, Lanes>();

  async function proceed(key: string, line: Line): Promise<void> {
    if (line.isRunning) return;
    line.isRunning = true;
    while (line.waiting.length > 0) await makeCalls(takeBatch(line.waiting));
    line.isRunning = false;
    lines.delete(key);
  }

  /** Never rejects. */
  async function makeCalls(calls: Waiting[]): Promise<void> {
    const awaited = calls.filter(isStillAwaited);
    if (awaited.length === 0) return;
    try {
      await callTogether(pool, awaited);
    } catch (error) {
      for (const call of awaited) makeAgain(call, error, awaited.length > 1);
    }
  }

  /**
   * None of the calls in the rejected statement has had an effect, unless the connection was lost: then nobody knows.
   */
  function makeAgain(call: Waiting, error: unknown, wasShared: boolean): void {
    const { alone, apart } = lanesOf(call.request);
    if (!(error instanceof DatabaseError)) call.reject(error);
    else if (wasShared) void alone(() => makeCalls([call]));
    else if (error.code === lockTimeout) void apart(() => callApart(pool, call));
    else call.reject(error);
  }

  function lanesOf({ crmId }: FunctionCall['request']): Lanes {
    const known = lanes.get(crmId) ?? { alone: pLimit(1), apart: pLimit(maxWaitingApart) };
    lanes.set(crmId, known);
    return known;
  }

  function makeCall(call: FunctionCall, span?: ActiveSpan): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (call.locks !== undefined) commits.requireCommits();
      const key = `${call.name} ${call.request.crmId}`;
      const line = lines.get(key) ?? { waiting: [], isRunning: false };
      lines.set(key, line);
      const { deadlineMs = Number.POSITIVE_INFINITY, signal } = currentContext() ?? {};
      line.waiting.push({ ...call, json: JSON.stringify(call.request), deadlineMs, signal, span, resolve, reject });
      // After everything that arrived together with this call.
      if (line.waiting.length === 1) setImmediate(() => void proceed(key, line));
    });
  }

  return (call) =>
    isRecorded()
      ? inStatementSpan(functionStatement(namespace, call.name), (span) => makeCall(call, span))
      : makeCall(call);
}

function isStillAwaited(call: Waiting): boolean {
  if (isAwaited(call)) return true;
  call.reject(notAwaited(call));
  return false;
}

/** Removes the calls that have waited longest, at least one. */
function takeBatch(waiting: Waiting[]): Waiting[] {
  let characters = 0;
  const end = waiting.findIndex(
    ({ json }, index) => index === maxBatch || ((characters += json.length) > maxBatchCharacters && index > 0),
  );
  return waiting.splice(0, end === -1 ? waiting.length : end);
}

/** Resolves each call. Rejects if the database rejects the statement. */
async function callTogether(pool: PostgresPool, calls: Waiting[]): Promise<void> {
  const sorted = calls.toSorted(({ locks: one = '' }, { locks: other = '' }) => (one < other ? -1 : 1));
  const { name } = sorted[0]!;
  const text = `
    SELECT index, answer, ${rejectAfter('$2')}
      FROM (
        SELECT index, ${name}(request) AS answer
          FROM set_config('lock_timeout', '${shortLockTimeoutMs}', true), jsonb_array_elements($1) WITH ORDINALITY AS each(request, index)) AS called`;
  const value = `[${sorted.map(({ json }) => json).join(',')}]`;
  const deadlineMs = Math.min(...sorted.map((call) => call.deadlineMs));
  const answers = await runNamed<{ index: number; answer: unknown }>(
    pool,
    { name: `${name}_together`, text, value, deadlineMs },
    sorted,
  );
  for (const { index, answer } of answers) sorted[index - 1]!.resolve(answer);
}

/** Waits for locks as long as any other statement. */
async function callApart(pool: PostgresPool, call: Waiting): Promise<void> {
  if (!isStillAwaited(call)) return;
  const { name, json, deadlineMs, resolve, reject } = call;
  const text = `SELECT answer, ${rejectAfter('$2')} FROM (SELECT ${name}($1::jsonb) AS answer) AS called`;
  await runNamed<{ answer: unknown }>(pool, { name: `${name}_apart`, text, value: json, deadlineMs }, [call]).then(
    ([row]) => resolve(row!.answer),
    reject,
  );
}
