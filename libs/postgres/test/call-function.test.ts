import { runWithContext } from '@scheduling/runtime';
import { createTestDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import {
  callFunction,
  createDatabase,
  type Database,
  isUniqueViolation,
  translatePostgresError,
} from '../src/index.ts';

interface Schema {
  counter: { name: string; value: number };
  taken: { reference: string };
}

interface Answer {
  counter: string;
  value: number;
  transaction: string;
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
let database: Database<Schema>;

beforeAll(async () => {
  const url = new URL(await createTestDatabase());
  // A call that waits for a lock which a test holds still waits when the test is done, also on a slow machine.
  for (const limit of ['lock_timeout', 'statement_timeout', 'query_timeout', 'idle_in_transaction_session_timeout'])
    url.searchParams.set(limit, String(longTimeout.timeoutMs));
  database = createDatabase<Schema>({
    url: url.href,
    applicationName: 'test',
    logger: testLogger('call-function-test'),
    ...longTimeout,
  });
  await sql
    .raw(`
    CREATE TABLE counter (name text PRIMARY KEY, value integer NOT NULL DEFAULT 0);
    CREATE TABLE taken (reference text CONSTRAINT taken_reference_key UNIQUE);
    INSERT INTO counter SELECT 'c-' || number FROM generate_series(0, 99) AS number;
    CREATE FUNCTION count_up(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
    DECLARE new_value integer;
    BEGIN
      UPDATE counter SET value = value + 1 WHERE name = request ->> 'counter' RETURNING value INTO new_value;
      IF request ->> 'reference' IS NOT NULL THEN INSERT INTO taken VALUES (request ->> 'reference'); END IF;
      RETURN jsonb_build_object('counter', request ->> 'counter', 'value', new_value, 'transaction', pg_current_xact_id()::text);
    END $$;`)
    .execute(database.kysely);
});
afterAll(() => database?.[Symbol.asyncDispose]());

function countUp(
  counter: string,
  request: { crmId?: string; reference?: string } = {},
  db: Parameters<typeof callFunction>[0] = database.kysely,
): Promise<Answer> {
  const whole = { crmId: 'crm', counter, ...request };
  return callFunction<Answer>(db, { name: 'count_up', request: whole, locks: counter });
}

it('makes calls that wait at the same moment in shared transactions, at most 64 in one, and gives each its own answer', async () => {
  const names = numbers(100).map((number) => `c-${(number * 37) % 100}`);
  const answers = await Promise.all(names.map((name) => countUp(name)));
  expect(answers.map(({ counter }) => counter)).toEqual(names);
  const sizes = Object.values(Object.groupBy(answers, ({ transaction }) => transaction)).map(
    (shared) => shared!.length,
  );
  expect(sizes.toSorted((a, b) => a - b)).toEqual([36, 64]);
});

it('counts every one of many calls that lock the same row', async () => {
  const answers = await Promise.all(numbers(300).map(() => countUp('c-0')));
  const values = answers.map(({ value }) => value).toSorted((a, b) => a - b);
  expect(values).toEqual(numbers(300).map((index) => values[0]! + index));
});

it('never mixes the calls of several CRMs', async () => {
  const answers = await Promise.all(
    numbers(40).map(async (index) => ({
      crmId: `crm-${index % 2}`,
      ...(await countUp(`c-${index}`, { crmId: `crm-${index % 2}` })),
    })),
  );
  const transactions = (crmId: string) =>
    new Set(answers.filter((answer) => answer.crmId === crmId).map(({ transaction }) => transaction));
  expect([...transactions('crm-0')].filter((id) => transactions('crm-1').has(id))).toEqual([]);
  expect(transactions('crm-0').size).toBe(1);
});

it('rejects only the call that the database rejects, and no call takes effect twice', async () => {
  await countUp('c-1', { reference: 'once' });
  const { value: before } = await countUp('c-2');
  const settled = await Promise.allSettled([
    countUp('c-2', { reference: 'new' }),
    countUp('c-2', { reference: 'once' }),
    countUp('c-2'),
  ]);
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(isUniqueViolation((settled[1] as PromiseRejectedResult).reason, 'taken_reference_key')).toBe(true);
  expect((await countUp('c-2')).value).toBe(before + 3);
});

it('does not let calls that wait for a lock keep the others waiting, whether they arrived together or not', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = database.transaction(async (tx) => {
    await sql`SELECT FROM counter WHERE name = 'c-50' FOR UPDATE`.execute(tx);
    locked.resolve();
    await released;
  });
  await locked.promise;
  let isBlocked = true;
  const blocked = Promise.all(numbers(5).map(() => countUp('c-50'))).finally(() => (isBlocked = false));
  await Promise.all(numbers(10).map((index) => countUp(`c-${index + 60}`)));
  const otherCrm = await Promise.all(numbers(20).map((index) => countUp(`c-${index + 70}`, { crmId: `crm-${index}` })));
  const later = await countUp('c-60');
  expect([otherCrm.length, later.counter, isBlocked]).toEqual([20, 'c-60', true]);
  release();
  await holding;
  const values = (await blocked).map(({ value }) => value).toSorted((a, b) => a - b);
  expect(values).toEqual(numbers(5).map((index) => values[0]! + index));
});

it.each([
  ['has given up', { deadlineMs: Date.now() }],
  ['has disconnected', { signal: AbortSignal.abort() }],
])('does not make a call whose caller %s', async (_, givenUp) => {
  const { value: before } = await countUp('c-5');
  const late = runWithContext({ requestId: 'r', ...givenUp }, () => countUp('c-5'));
  await expect(late).rejects.toMatchObject({ code: 'database.unavailable' });
  expect((await countUp('c-5')).value).toBe(before + 1);
});

it('has no effect if the database comes to it when its caller has given up', async () => {
  const { value: before } = await countUp('c-6');
  const deadlineMs = Date.now() + 1_000;
  const late = await database.transaction(async (tx) => {
    await sql`SELECT FROM counter WHERE name = 'c-6' FOR UPDATE`.execute(tx);
    const waiting = Promise.allSettled([runWithContext({ requestId: 'r', deadlineMs }, () => countUp('c-6'))]);
    // The clock of the database may be known that badly.
    await eventually(() => expect(Date.now()).toBeGreaterThan(deadlineMs + 500));
    return { waiting };
  });
  const [settled] = await late.waiting;
  expect(settled).toMatchObject({ status: 'rejected' });
  expect(translatePostgresError((settled as PromiseRejectedResult).reason)).toMatchObject({
    code: 'database.unavailable',
  });
  expect((await countUp('c-6')).value).toBe(before + 1);
});

it('has the time that its caller gives it, whatever the clock of the process says', async () => {
  const { value: before } = await countUp('c-7');
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 600_000 });
  try {
    await runWithContext({ requestId: 'r', deadlineMs: Date.now() + 20_000 }, () => countUp('c-7'));
  } finally {
    vi.useRealTimers();
  }
  expect((await countUp('c-7')).value).toBe(before + 2);
});

it('is a part of the transaction in which it is called', async () => {
  const { value: before } = await countUp('c-3');
  const failing = database.transaction(async (tx) => {
    expect((await countUp('c-3', {}, tx)).value).toBe(before + 1);
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect((await countUp('c-3')).value).toBe(before + 1);
});

it('rejects all calls if the connection ends, and makes later ones', async () => {
  await sql
    .raw(
      `CREATE FUNCTION lose_connection(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb(pg_terminate_backend(pg_backend_pid()))'`,
    )
    .execute(database.kysely);
  const lose = () => callFunction(database.kysely, { name: 'lose_connection', request: { crmId: 'crm' }, locks: '' });
  const settled = await Promise.allSettled([lose(), lose(), lose()]);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect((await countUp('c-4')).value).toBeGreaterThan(0);
});
