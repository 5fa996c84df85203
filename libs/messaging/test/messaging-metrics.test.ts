import { DomainError } from '@scheduling/errors';
import { type Broker, connectBroker, consumerName, events, streamName } from '@scheduling/events';
import { createDatabase, type Database, migrateDatabase } from '@scheduling/postgres';
import { createMetrics } from '@scheduling/runtime';
import {
  createTestDatabase,
  eventually,
  longTimeout,
  startTestNats,
  sumSamples,
  testLogger,
  type TestNats,
} from '@scheduling/testing';
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

const logger = testLogger('messaging-metrics-test');
const consumer = 'calendar-customer-customer-changed';

describe('the metrics of events', () => {
  let stack: AsyncDisposableStack;
  let nats: TestNats;
  let database: Database<MessagingSchema>;
  let broker: Broker;
  let metrics: ReturnType<typeof createMetrics>;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    nats = stack.use(await startTestNats());
    const url = await createTestDatabase();
    await migrateDatabase({ url, sets: [messagingMigrations], logger });
    metrics = createMetrics('test');
    database = stack.use(createDatabase<MessagingSchema>({ url, applicationName: 'test', logger, ...longTimeout }));
    broker = stack.use(connectBroker({ url: nats.url('calendar'), name: 'calendar', logger, metrics }));
  });
  afterEach(() => stack.disposeAsync());

  const value = async (name: string, labels: Record<string, string> = {}): Promise<number | undefined> =>
    sumSamples(await metrics.metrics(), name, labels);
  const append = (...versions: number[]) =>
    database.transaction((tx) =>
      appendEvent(tx, events.customerChanged, ...versions.map((version) => changedCustomer(version))),
    );
  const connect = (user: 'customer' | 'test') => stack.use(connectBroker({ url: nats.url(user), name: user, logger }));
  const relay = () =>
    stack.use(startRelay({ service: 'customer', database, broker: connect('customer'), logger, metrics }));

  function consume(handle: (version: number) => void | Promise<void> = () => undefined): AsyncDisposable {
    const subscriptions = [
      subscription<MessagingSchema, { version: number }>(events.customerChanged, async ({ version }) => {
        await handle(version);
        return async () => undefined;
      }),
    ];
    return stack.use(
      startConsumers({ service: 'calendar', database, broker, logger, maxAttempts: 2, subscriptions, metrics }),
    );
  }

  it('show how many events wait in the outbox, and for how long, until they are published', async () => {
    await nats.stop();
    relay();
    await append(1, 2);
    await database.kysely
      .updateTable('outbox')
      .set({ createdAt: new Date(Date.now() - 90_000) })
      .execute();
    expect(await value('scheduling_outbox_unsent_events')).toBe(2);
    expect(await value('scheduling_outbox_oldest_unsent_seconds')).toBeGreaterThan(85);
    await eventually(async () => expect(await value('scheduling_nats_connected')).toBe(0));
    await nats.start();
    await eventually(async () => expect(await value('scheduling_outbox_unsent_events')).toBe(0));
    expect(await value('scheduling_outbox_oldest_unsent_seconds')).toBe(0);
    expect(await value('scheduling_events_published_total', { subject: events.customerChanged.subject })).toBe(2);
    // The relay has a connection of its own.
    await eventually(async () => expect(await value('scheduling_nats_connected')).toBe(1));
  });

  it('show how many events wait for a consumer, until they are processed', async () => {
    relay();
    const gate = Promise.withResolvers<void>();
    consume(() => gate.promise);
    stack.defer(gate.resolve);
    await append(1, 2, 3);
    await eventually(async () => expect(await value('scheduling_consumer_lag_events', { consumer })).toBe(3));
    gate.resolve();
    await eventually(async () => expect(await value('scheduling_consumer_lag_events', { consumer })).toBe(0));
    expect(await value('scheduling_events_consumed_total', { consumer, outcome: 'processed' })).toBe(3);
  });

  it('omit a consumer that does not exist, and show the others', async () => {
    const subscriptions = [events.customerChanged, events.providerChanged].map((definition) =>
      subscription<MessagingSchema, unknown>(definition, async () => undefined),
    );
    const consuming = startConsumers({ service: 'calendar', database, broker, logger, subscriptions, metrics });
    const lags = async () =>
      (await metrics.metrics()).match(/(?<=^scheduling_consumer_lag_events\{.*consumer=")[^"]+/gm);
    const other = consumerName('calendar', events.providerChanged);
    await eventually(async () => expect(await lags()).toEqual([consumer, other]));
    // Otherwise it would be created again.
    await consuming[Symbol.asyncDispose]();
    const { manager } = await connect('test').jetStream(AbortSignal.timeout(5_000));
    await manager.consumers.delete(streamName, other);
    expect(await lags()).toEqual([consumer]);
  });

  it('count deliveries by outcome', async () => {
    relay();
    let away = true;
    consume((version) => {
      if (version === 1 && away) {
        away = false;
        throw new DomainError('service.unavailable');
      }
      if (version === 2) throw new Error('poison');
    });
    await append(1, 2);
    await eventually(async () => expect(await value('scheduling_dead_letters')).toBe(1));
    const outcomes = async () =>
      Promise.all(
        ['processed', 'waiting', 'failed', 'dead_letter'].map((outcome) =>
          value('scheduling_events_consumed_total', { consumer, outcome }),
        ),
      );
    await eventually(async () => expect(await outcomes()).toEqual([1, 1, 1, 1]));
    const { client, manager } = await connect('test').jetStream(AbortSignal.timeout(5_000));
    const first = (await manager.streams.getMessage('scheduling', { seq: 1 }))!;
    await client.publish(first.subject, first.data, { headers: first.header, msgID: 'again' });
    await eventually(async () =>
      expect(await value('scheduling_events_consumed_total', { consumer, outcome: 'repeated' })).toBe(1),
    );
  });

  it('are absent, not wrong, while NATS is down, and the others remain available', async () => {
    consume();
    await eventually(async () => expect(await value('scheduling_consumer_lag_events')).toBe(0));
    await nats.stop();
    await eventually(async () => expect(await value('scheduling_consumer_lag_events')).toBeUndefined());
    expect(await value('scheduling_dead_letters')).toBe(0);
    expect(await value('process_start_time_seconds')).toBeGreaterThan(0);
  });
});
