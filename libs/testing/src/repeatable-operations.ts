import { DomainError } from '@scheduling/errors';
import { newRequestId, runWithContext } from '@scheduling/runtime';
import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { describe, expect, it } from 'vitest';
import { patiently } from './patience.ts';

/** An operation that supports the `Idempotency-Key`, as its service offers it. */
export interface RepeatableOperation<Request = never> {
  name: string;
  /** Returns a new request that will succeed, after creating everything that it needs. */
  prepare: (crmId: string) => Promise<Request>;
  /** The same request with different content. */
  change: (request: Request) => Request;
  send: (request: Request) => Promise<unknown>;
  /** Returns a request that is rejected with this code until it is repaired. */
  prepareRefused: (crmId: string) => Promise<{ request: Request; code: string; repair: () => Promise<unknown> }>;
}

export interface RepeatableService {
  pool: Pool;
  /** The tables that the operations write to, including events. */
  tables: string[];
  /** Two tenants in which requests can be prepared. */
  crmIds: [string, string];
}

/** Calls like the gateway for a client that sent this `Idempotency-Key`. */
export function withKey<Result>(idempotencyKey: string, call: () => Promise<Result>): Promise<Result> {
  return runWithContext({ requestId: newRequestId(), idempotencyKey }, call);
}

/** Ties an operation's request type to its functions, so that a table can hold operations of every type. */
export function repeatable<Request>(operation: RepeatableOperation<Request>): RepeatableOperation {
  return operation as unknown as RepeatableOperation;
}

/** Declares the tests that every operation with an `Idempotency-Key` has to pass (interface 1). */
export function testRepeatableOperations(operations: RepeatableOperation[], service: () => RepeatableService): void {
  const { countRows, effectOf } = createObserver(service);

  describe.each(operations)('$name with an Idempotency-Key', ({ prepare, change, send, prepareRefused }) => {
    const prepareFirst = () => prepare(service().crmIds[0]);
    const nothing = async () => Object.fromEntries(Object.keys(await countRows()).map((table) => [table, 0]));

    it('repeats the first response, and does not repeat the work', async () => {
      const [key, request] = [randomUUID(), await prepareFirst()];
      const first = await withKey(key, () => send(request));
      let again: unknown;
      expect(await effectOf(async () => (again = await withKey(key, () => send(request))))).toEqual(await nothing());
      expect(again).toEqual(first);
    });

    it('rejects different content under the same key', async () => {
      const [key, request] = [randomUUID(), await prepareFirst()];
      await withKey(key, () => send(request));
      const refused = async () =>
        expect(await codeOf(withKey(key, () => send(change(request))))).toBe('unprocessable idempotency_key.reused');
      expect(await effectOf(refused)).toEqual(await nothing());
    });

    it('does not see the keys of another CRM', async () => {
      const key = randomUUID();
      const [mine, theirs] = await Promise.all(service().crmIds.map(prepare));
      const effect = await effectOf(() => withKey(key, () => send(mine!)));
      expect(await effectOf(() => withKey(key, () => send(theirs!)))).toEqual(effect);
    });

    it('has one effect for twenty concurrent requests', async () => {
      const [single, request] = [await prepareFirst(), await prepareFirst()];
      const effect = await effectOf(() => withKey(randomUUID(), () => send(single)));
      const key = randomUUID();
      let answers: PromiseSettledResult<unknown>[] = [];
      const twenty = async () =>
        (answers = await Promise.allSettled(
          Array.from({ length: 20 }, () => patiently(() => withKey(key, () => send(request)))),
        ));
      expect(await effectOf(twenty)).toEqual(effect);
      const answered = answers.filter((answer) => answer.status === 'fulfilled').map(({ value }) => value);
      expect(answered.length).toBeGreaterThan(0);
      for (const answer of answered) expect(answer).toEqual(answered[0]);
      const refused = await Promise.all(
        answers
          .filter((answer) => answer.status === 'rejected')
          .map(({ reason }) => codeOf(Promise.reject(reason as Error))),
      );
      expect(new Set(refused).difference(new Set(['conflict idempotency_key.in_flight']))).toEqual(new Set());
    });

    it('stores nothing of a failure: the next attempt does the work', async () => {
      const { request, code, repair } = await prepareRefused(service().crmIds[0]);
      const key = randomUUID();
      expect(await codeOf(withKey(key, () => send(request)))).toContain(code);
      await repair();
      await withKey(key, () => send(request));
    });

    it('keeps the key for 72 hours, and no longer', async () => {
      const [key, request, next] = [randomUUID(), await prepareFirst(), await prepareFirst()];
      await withKey(key, () => send(request));
      await service().pool.query(
        `UPDATE idempotency_key SET created_at = now() - interval '72 hours' + interval '1 minute'`,
      );
      expect(await codeOf(withKey(key, () => send(next)))).toBe('unprocessable idempotency_key.reused');
      await service().pool.query(`UPDATE idempotency_key SET created_at = now() - interval '72 hours'`);
      expect(await effectOf(() => withKey(key, () => send(next)))).not.toEqual(await nothing());
    });
  });
}

/** Counts the rows of the service's tables, and how many a piece of work adds. */
function createObserver(service: () => RepeatableService) {
  const countRows = async (): Promise<Record<string, number>> => {
    const { pool, tables } = service();
    const counts = tables.map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`).join(', ');
    return (await pool.query<Record<string, number>>(`SELECT ${counts}`)).rows[0]!;
  };
  const effectOf = async (work: () => Promise<unknown>): Promise<Record<string, number>> => {
    const before = await countRows();
    await work();
    const after = await countRows();
    return Object.fromEntries(Object.entries(after).map(([table, count]) => [table, count - before[table]!]));
  };
  return { countRows, effectOf };
}

/** Category and code of the domain error with which a call is rejected. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    if (error instanceof DomainError) return `${error.category} ${error.code}`;
    throw error;
  }
  throw new Error('the call was not refused');
}
