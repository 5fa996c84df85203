import { type ActiveSpan, inSpan, runWithContext, startTracing } from '@scheduling/runtime';
import {
  type CollectedSpan,
  createTestDatabase,
  eventually,
  longTimeout,
  type SpanCollector,
  startSpanCollector,
  testLogger,
} from '@scheduling/testing';
import { sql } from 'kysely';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { callFunction, createDatabase, type Database, readFunction } from '../src/index.ts';

interface Schema {
  person: { name: string };
}

const logger = testLogger('tracing-test');
const stack = new AsyncDisposableStack();
let url: string;
let database: Database<Schema>;
let collector: SpanCollector;

beforeAll(async () => {
  url = await createTestDatabase();
  database = stack.use(createDatabase<Schema>({ url, applicationName: 'test', logger, ...longTimeout }));
  await sql
    .raw(`
    CREATE TABLE person (name text CONSTRAINT person_name_key UNIQUE);
    CREATE FUNCTION greet(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RETURN to_jsonb('hello ' || (request ->> 'name')); END $$;
    CREATE FUNCTION list_people(request jsonb) RETURNS TABLE (name text) LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN QUERY SELECT person.name FROM person; END $$;`)
    .execute(database.kysely);
  collector = stack.use(await startSpanCollector());
});
afterAll(() => stack.disposeAsync());
beforeEach(() => void collector.spans.splice(0));

/** The spans of the work, in the order in which they ended. */
async function record(work: () => Promise<unknown>): Promise<CollectedSpan[]> {
  const settings = { endpoint: collector.endpoint, sampler: 'parentbased_always_on', ratio: 1 } as const;
  {
    // Its disposal sends all spans.
    await using _tracing = await startTracing({ service: 'test', settings, logger });
    await work();
  }
  return collector.spans;
}

function newTraceparent(flags = '01'): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-${flags}`;
}

function inTrace<Result>(traceparent: string, work: (span: ActiveSpan) => Promise<Result>): Promise<Result> {
  return inSpan('request', { kind: 'SERVER', parent: traceparent }, work);
}

const greet = (name: string): Promise<unknown> =>
  callFunction(database.kysely, { name: 'greet', request: { crmId: 'crm', name } as { crmId: string }, locks: name });
const namesOf = (spans: CollectedSpan[]): string[] => spans.map(({ name }) => name);
const attributesOf = ({ attributes }: Pick<CollectedSpan, 'attributes'>): object =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value as object)[0] as unknown]));

it('a call has a span in its own trace, also if it shares its transaction with others', async () => {
  const [one, other] = [newTraceparent(), newTraceparent()];
  const spans = await record(async () => {
    const answers = await Promise.all([
      inTrace(one, () => greet('Lovelace')),
      inTrace(other, () => greet('Grace')),
      greet('Edsger'),
      inTrace(newTraceparent('00'), () => greet('Turing')),
    ]);
    expect(answers).toEqual(['hello Lovelace', 'hello Grace', 'hello Edsger', 'hello Turing']);
  });
  expect(namesOf(spans).toSorted()).toEqual(['SELECT greet', 'SELECT greet', 'request', 'request']);
  for (const traceparent of [one, other]) {
    const request = spans.find(({ name, traceId }) => name === 'request' && traceparent.includes(traceId));
    const call = spans.find(({ name, traceId }) => name === 'SELECT greet' && traceparent.includes(traceId));
    expect(call).toMatchObject({ kind: 3, parentSpanId: request!.spanId, events: [{ name: 'sent' }] });
    expect(attributesOf(call!)).toEqual({
      'db.system.name': 'postgresql',
      'db.namespace': new URL(url).pathname.slice(1),
      'db.operation.name': 'SELECT',
      'db.query.summary': 'SELECT greet',
      'db.stored_procedure.name': 'greet',
    });
    expect(attributesOf(call!.events[0]!)).toEqual({ 'db.operation.batch.size': 4 });
  }
  expect(JSON.stringify(spans)).not.toMatch(/lovelace|grace|edsger|turing/i);
});

it('a read and every statement of a transaction have spans, without values', async () => {
  const spans = await record(() =>
    inTrace(newTraceparent(), async () => {
      await readFunction(database.kysely, { name: 'list_people', request: { crmId: 'crm' } });
      await database.kysely.selectFrom('person').selectAll().where('name', '=', 'Lovelace').execute();
      await database.transaction(async (tx) => {
        await tx.insertInto('person').values({ name: 'Grace' }).execute();
        await callFunction(tx, { name: 'greet', request: { crmId: 'crm' }, locks: '' });
      });
    }),
  );
  expect(namesOf(spans)).toEqual([
    'SELECT list_people',
    'SELECT person',
    'START TRANSACTION',
    'INSERT person',
    'SELECT greet',
    'COMMIT',
    'request',
  ]);
  expect(attributesOf(spans[3]!)).toMatchObject({ 'db.operation.name': 'INSERT', 'db.collection.name': 'person' });
  expect(JSON.stringify(spans)).not.toMatch(/lovelace|grace/i);
});

it('a span begins with the wait for a connection, and shows its end', async () => {
  await using small = createDatabase<Schema>({ url, applicationName: 'test', logger, maxConnections: 1 });
  const statements = [
    () => callFunction(small.kysely, { name: 'greet', request: { crmId: 'crm' }, locks: '' }),
    () => readFunction(small.kysely, { name: 'list_people', request: {} }),
    () => small.kysely.selectFrom('person').selectAll().execute(),
  ];
  const waitMs = 20;
  const spans = await record(async () => {
    for (const statement of statements) {
      const connection = await small.pool.connect();
      const waiting = inTrace(newTraceparent(), statement);
      waiting.catch(() => undefined);
      await eventually(() => expect(small.pool.waitingCount).toBe(1));
      const waitingMs = performance.now();
      await eventually(() => expect(performance.now() - waitingMs).toBeGreaterThan(waitMs));
      connection.release();
      await waiting;
    }
  });
  const traced = spans.filter(({ name }) => name !== 'request');
  expect(namesOf(traced)).toEqual(['SELECT greet', 'SELECT list_people', 'SELECT person']);
  const waitsMs = traced.map(
    ({ startTimeUnixNano, events }) => Number(BigInt(events[0]!.timeUnixNano) - BigInt(startTimeUnixNano)) / 1e6,
  );
  for (const each of waitsMs) expect(each).toBeGreaterThan(waitMs);
});

it('the span of a rejected statement has its SQLSTATE, and not its message', async () => {
  await sql`INSERT INTO person VALUES ('Barbara')`.execute(database.kysely);
  const spans = await record(() =>
    inTrace(newTraceparent(), () =>
      expect(database.kysely.insertInto('person').values({ name: 'Barbara' }).execute()).rejects.toMatchObject({
        code: '23505',
      }),
    ),
  );
  const failed = spans.find(({ name }) => name === 'INSERT person')!;
  expect(attributesOf(failed)).toMatchObject({ 'error.type': '23505', 'db.response.status_code': '23505' });
  expect(JSON.stringify(spans)).not.toMatch(/barbara/i);
});

it('a call whose caller has given up has a span that was not sent', async () => {
  const spans = await record(() =>
    inTrace(newTraceparent(), () =>
      runWithContext({ requestId: 'r', deadlineMs: Date.now() }, () =>
        expect(greet('Lovelace')).rejects.toMatchObject({ code: 'database.unavailable' }),
      ),
    ),
  );
  const call = spans.find(({ name }) => name === 'SELECT greet')!;
  expect(call.events).toEqual([]);
  expect(attributesOf(call)).toMatchObject({ 'error.type': 'database.unavailable' });
});

it.each([
  ['outside of a trace', (work: () => Promise<unknown>) => work()],
  ['in a trace that is not sampled', (work: () => Promise<unknown>) => inTrace(newTraceparent('00'), work)],
])('nothing is recorded %s', async (_, run) => {
  const spans = await record(() =>
    run(async () => {
      await greet('Lovelace');
      await readFunction(database.kysely, { name: 'list_people', request: {} });
      await database.transaction((tx) => tx.selectFrom('person').selectAll().execute());
    }),
  );
  expect(spans).toEqual([]);
});
