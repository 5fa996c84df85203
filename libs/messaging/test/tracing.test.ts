import { connectBroker, events } from '@scheduling/events';
import { createDatabase, type Database, migrateDatabase } from '@scheduling/postgres';
import { currentTraceparent, inSpan, startTracing, type TracingSettings } from '@scheduling/runtime';
import {
  type CollectedSpan,
  createTestDatabase,
  eventually,
  longTimeout,
  type SpanCollector,
  startSpanCollector,
  startTestNats,
  testLogger,
  type TestNats,
} from '@scheduling/testing';
import { sql } from 'kysely';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  appendEvent,
  type MessagingSchema,
  messagingMigrations,
  startConsumers,
  startRelay,
  subscription,
} from '../src/index.ts';
import { changedCustomer } from './changed-customer.ts';

const logger = testLogger('messaging-tracing-test');
const { customerChanged } = events;
const publish = `publish ${customerChanged.subject}`;
const all: Pick<TracingSettings, 'sampler' | 'ratio'> = { sampler: 'parentbased_always_on', ratio: 1 };

describe('the trace of an event', () => {
  let stack: AsyncDisposableStack;
  let nats: TestNats;
  let database: Database<MessagingSchema>;
  let collector: SpanCollector;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    collector = stack.use(await startSpanCollector());
    nats = stack.use(await startTestNats());
    const url = await createTestDatabase();
    await migrateDatabase({ url, sets: [messagingMigrations], logger });
    database = stack.use(createDatabase<MessagingSchema>({ url, applicationName: 'test', logger, ...longTimeout }));
  });
  afterEach(() => stack.disposeAsync());

  const trace = ({ sampler, ratio } = all) =>
    startTracing({ service: 'test', settings: { endpoint: collector.endpoint, sampler, ratio }, logger });
  const newTraceparent = (flags = '01'): string =>
    `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-${flags}`;
  const append = (parent?: string) =>
    inSpan('request', { kind: 'SERVER', parent }, () =>
      database.transaction((tx) => appendEvent(tx, customerChanged, changedCustomer(1))),
    );
  const relay = () =>
    stack.use(
      startRelay({
        service: 'customer',
        database,
        broker: stack.use(connectBroker({ url: nats.url('customer'), name: 'customer', logger })),
        logger,
      }),
    );

  /** Consumes events until the given number has taken effect, with what the handler has as its traceparent. */
  async function consume(count: number): Promise<(string | undefined)[]> {
    const handled: (string | undefined)[] = [];
    let committed = 0;
    const effects = subscription<MessagingSchema, unknown>(customerChanged, async () => {
      handled.push(currentTraceparent());
      return async (tx) => {
        await sql`SELECT pg_backend_pid()`.execute(tx);
        committed += 1;
      };
    });
    const broker = stack.use(connectBroker({ url: nats.url('calendar'), name: 'calendar', logger }));
    await using _consumers = startConsumers<MessagingSchema>({
      service: 'calendar',
      database,
      broker,
      logger,
      fetchMs: 1_000,
      subscriptions: [effects],
    });
    await eventually(() => expect(committed).toBe(count));
    return handled;
  }

  /** Publishes and processes what is in the outbox. */
  async function deliver(count: number): Promise<(string | undefined)[]> {
    await using _relay = relay();
    return await consume(count);
  }

  /** The names of the spans from the one without a parent among them to this one. */
  function pathTo(span: CollectedSpan): string {
    const parent = collector.spans.find(({ spanId }) => spanId === span.parentSpanId);
    return parent === undefined ? span.name : `${pathTo(parent)} > ${span.name}`;
  }

  it('leads from the request over its publication to each effect, also of those that share a transaction', async () => {
    const traceparents = [newTraceparent(), newTraceparent()];
    {
      await using _tracing = await trace();
      for (const traceparent of traceparents) await append(traceparent);
      await deliver(2);
    }
    for (const traceparent of traceparents) {
      const spans = collector.spans.filter(({ traceId }) => traceparent.includes(traceId));
      const processed = `request > ${publish} > process customer-customer-changed`;
      expect(spans.map(pathTo).toSorted()).toEqual([
        'request',
        'request > COMMIT',
        'request > INSERT outbox',
        'request > START TRANSACTION',
        `request > ${publish}`,
        processed,
        `${processed} > commit effect`,
        `${processed} > commit effect > SELECT pg_backend_pid`,
      ]);
      expect(spans.find(({ name }) => name === publish)).toMatchObject({ kind: 4 });
    }
    // Nothing else, such as the statements of the relay, began a trace.
    expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(2);
  });

  it('is not recorded if the request was not sampled, but its id arrives', async () => {
    const traceparent = newTraceparent('00');
    {
      await using _tracing = await trace();
      await append(traceparent);
      const [handled] = await deliver(1);
      expect(handled).toMatch(new RegExp(`^00-${traceparent.slice(3, 35)}-[\\da-f]{16}-00$`));
    }
    expect(collector.spans).toEqual([]);
  });

  it('is not recorded with a ratio of 0', async () => {
    {
      await using _tracing = await trace({ sampler: 'parentbased_traceidratio', ratio: 0 });
      await append();
      const [handled] = await deliver(1);
      expect(handled).toMatch(/-00$/);
    }
    expect(collector.spans).toEqual([]);
  });

  it('is complete or absent with a ratio between 0 and 1', async () => {
    const count = 60;
    {
      await using _tracing = await trace({ sampler: 'parentbased_traceidratio', ratio: 0.5 });
      for (let index = 0; index < count; index += 1) await append();
      await deliver(count);
    }
    const traces = Object.values(Object.groupBy(collector.spans, ({ traceId }) => traceId));
    // Outside of this is less than one in a million.
    expect(traces.length).toBeGreaterThan(count * 0.1);
    expect(traces.length).toBeLessThan(count * 0.9);
    for (const spans of traces) expect(spans).toHaveLength(8);
  });

  it('continues after a relay without tracing', async () => {
    const traceparent = newTraceparent();
    {
      await using _tracing = await trace();
      await append(traceparent);
    }
    relay();
    await eventually(async () =>
      expect(await database.kysely.selectFrom('outbox').where('sentAt', 'is', null).selectAll().execute()).toEqual([]),
    );
    {
      await using _tracing = await trace();
      await consume(1);
    }
    const process = collector.spans.find(({ name }) => name.startsWith('process '));
    expect(pathTo(process!)).toBe('request > process customer-customer-changed');
  });
});
