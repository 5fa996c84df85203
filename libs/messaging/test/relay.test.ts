import type { JetStreamManager } from '@nats-io/jetstream';
import { connectBroker, type EventJson, events, streamSettings } from '@scheduling/events';
import { createDatabase, type Database, migrateDatabase } from '@scheduling/postgres';
import {
  createTestDatabase,
  eventually,
  longTimeout,
  startTestNats,
  testLogger,
  type TestNats,
} from '@scheduling/testing';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { appendEvent, type MessagingSchema, messagingMigrations, startRelay } from '../src/index.ts';
import { startProxy } from './nats-proxy.ts';
import { changedCustomer } from './changed-customer.ts';

const logger = testLogger('relay-test');
const { customerChanged } = events;
const isEvent = (request: string): boolean => request.startsWith(`HPUB ${customerChanged.subject} `);

describe('the relay', () => {
  let stack: AsyncDisposableStack;
  let nats: TestNats;
  let database: Database<MessagingSchema>;
  let manager: JetStreamManager;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    nats = stack.use(await startTestNats());
    const url = await createTestDatabase();
    await migrateDatabase({ url, sets: [messagingMigrations], logger });
    database = stack.use(createDatabase<MessagingSchema>({ url, applicationName: 'test', logger, ...longTimeout }));
    const test = stack.use(connectBroker({ url: nats.url('test'), name: 'test', logger }));
    ({ manager } = await test.jetStream(AbortSignal.timeout(5_000)));
  });
  afterEach(() => stack.disposeAsync());

  function relay(url = nats.url('customer')): void {
    const broker = stack.use(connectBroker({ url, name: 'customer', logger }));
    stack.use(startRelay({ service: 'customer', database, broker, logger }));
  }

  const append = (count: number) =>
    database.transaction((tx) =>
      appendEvent(tx, customerChanged, ...Array.from({ length: count }, (_, version) => changedCustomer(version))),
    );
  const outbox = () => database.kysely.selectFrom('outbox').selectAll().orderBy('id').execute();
  const unsent = async () => (await outbox()).filter(({ sentAt }) => sentAt === null);

  /** The ids of the events in the stream, in their order. */
  async function published(): Promise<string[]> {
    const { state } = await manager.streams.info('scheduling');
    const messages = await Promise.all(
      Array.from({ length: state.messages }, (_, index) =>
        manager.streams.getMessage('scheduling', { seq: index + 1 }),
      ),
    );
    return messages.map((message) => message!.header.get('ce-id'));
  }

  it('publishes in the order of the outbox, marks what was acknowledged, and records the last event and its place in the stream', async () => {
    await append(700);
    relay();
    await eventually(async () => expect(await unsent()).toEqual([]));
    const ids = (await outbox()).map(({ id }) => id);
    expect(await published()).toEqual(ids);
    expect(await database.kysely.selectFrom('outboxPosition').selectAll().execute()).toMatchObject([
      { sequence: 700, eventId: ids.at(-1) },
    ]);
  });

  it.each<[string, (request: string) => string | undefined]>([
    ['does not reach NATS', () => undefined],
    ['is stored, but whose acknowledgement is lost,', (request) => request.replace(/_INBOX\S+/, 'nobody')],
  ])(
    'publishes an event that %s again until it is acknowledged, and marks only the others until then',
    async (_, lose) => {
      await append(100);
      const ids = (await outbox()).map(({ id }) => id);
      let losing = true;
      const url = await startProxy(stack, nats.url('customer'), async (request, { forward }) => {
        if (!losing || !isEvent(request) || !request.includes(ids[50]!)) return forward();
        const replacement = lose(request);
        if (replacement !== undefined) forward(replacement);
      });
      relay(url);
      await eventually(async () => expect(await unsent()).toMatchObject([{ id: ids[50] }]));
      losing = false;
      await eventually(async () => expect(await unsent()).toEqual([]));
      expect((await published()).toSorted()).toEqual(ids);
    },
  );

  it('continues after the last event that NATS received when it loses the connection in the middle of a part', async () => {
    await append(100);
    let received = 0;
    let lost: (() => void) | undefined;
    const url = await startProxy(stack, nats.url('customer'), async (request, { forward, close }) => {
      if (lost !== close) forward();
      if (isEvent(request)) received += 1;
      if (received === 50) {
        lost ??= close;
        lost();
      }
    });
    relay(url);
    await eventually(async () => expect(await unsent()).toEqual([]));
    expect(lost).toBeDefined();
    expect(await published()).toEqual((await outbox()).map(({ id }) => id));
  });

  const large = { actor: 'x'.repeat(2_000_000) };
  const medium = { actor: 'x'.repeat(20_000) };
  it.each<[string, { subject?: string; data?: EventJson }]>([
    ['is larger than NATS accepts', { data: large }],
    ['is larger than the stream accepts', { data: medium }],
    ['it may not publish', { subject: events.crmChanged.subject }],
    ['only a newer version knows', { subject: 'scheduling.customer.v1.customer-celebrated' }],
    ['does not fit its type', { data: { version: 'first' } }],
  ])('publishes all events but the one that %s', async (_, change) => {
    await manager.streams.update('scheduling', { max_msg_size: 10_000 });
    await append(101);
    const [rejected, ...others] = (await outbox()).map(({ id }) => id);
    await database.kysely.updateTable('outbox').set(change).where('id', '=', rejected!).execute();
    relay();
    await eventually(async () => expect(await unsent()).toMatchObject([{ id: rejected }]));
    expect(await published()).toEqual(others);
  });

  it('publishes the events after those that NATS rejects, however many, and these when it accepts them', async () => {
    await manager.streams.update('scheduling', { max_msg_size: 10_000 });
    await append(601);
    const last = (await outbox()).at(-1)!;
    await database.kysely.updateTable('outbox').set({ data: medium }).where('id', '<', last.id).execute();
    relay();
    await eventually(async () => expect(await published()).toEqual([last.id]));
    await append(1);
    await eventually(async () => expect(await unsent()).toHaveLength(600));
    await manager.streams.update('scheduling', { max_msg_size: -1 });
    await eventually(async () => expect(await unsent()).toEqual([]));
  });

  it('publishes the others again after a loss if NATS has come to reject some, which then count as not published', async () => {
    await append(101);
    relay();
    await eventually(async () => expect(await unsent()).toEqual([]));
    const [rejected, ...others] = (await outbox()).map(({ id }) => id);
    await database.kysely.updateTable('outbox').set({ data: medium }).where('id', '=', rejected!).execute();
    await manager.streams.delete('scheduling');
    await manager.streams.add({ ...streamSettings, max_msg_size: 10_000 });
    await eventually(async () => expect(await unsent()).toMatchObject([{ id: rejected }]));
    await eventually(async () => expect(await published()).toEqual(others));
    await eventually(async () =>
      expect(await database.kysely.selectFrom('outboxPosition').selectAll().execute()).toMatchObject([
        { refillAfter: null },
      ]),
    );
  });

  it('publishes an event as its protobuf message, and one that was stored as a message as it is', async () => {
    const { subject, type, encode, toJson } = customerChanged;
    const [data, message] = [changedCustomer(1), Buffer.from(encode(changedCustomer(2)))];
    await sql`
      INSERT INTO outbox (subject, data, request_id) VALUES (${subject}, ${toJson(data)}, 'request')`.execute(
      database.kysely,
    );
    await sql`
      INSERT INTO outbox (subject, type, payload, request_id) VALUES (${subject}, ${type}, ${message}, 'request')`.execute(
      database.kysely,
    );
    relay();
    await eventually(async () => expect(await unsent()).toEqual([]));
    const messages = await Promise.all([1, 2].map((seq) => manager.streams.getMessage('scheduling', { seq })));
    expect(messages.map((each) => [each!.header.get('ce-type'), Buffer.from(each!.data)])).toEqual([
      [type, Buffer.from(encode(data))],
      [type, message],
    ]);
  });
});
