import { AckPolicy, type JetStreamManager } from '@nats-io/jetstream';
import type { CustomerChanged } from '@scheduling/contracts/events/v1';
import { connectBroker, events } from '@scheduling/events';
import { createDatabase, type Database, migrateDatabase, startCleanUps } from '@scheduling/postgres';
import {
  createTestDatabase,
  eventually,
  longTimeout,
  startTestNats,
  testLogger,
  type TestNats,
} from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  appendEvent,
  messagingCleanUps,
  type MessagingSchema,
  messagingMigrations,
  startConsumers,
  startRelay,
  subscription,
} from '../src/index.ts';
import { changedCustomer } from './changed-customer.ts';

const logger = testLogger('messaging-test');
/** Simulates what Postgres can process within the 5 s of the statement timeout. */
const mostPerStatement = 1_000;
const many = 2_000;

describe('more events than one statement can process', () => {
  let stack: AsyncDisposableStack;
  let nats: TestNats;
  let database: Database<MessagingSchema>;
  let stream: JetStreamManager;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    nats = stack.use(await startTestNats());
    const url = await createTestDatabase();
    await migrateDatabase({ url, sets: [messagingMigrations], logger });
    database = stack.use(createDatabase<MessagingSchema>({ url, applicationName: 'test', logger, ...longTimeout }));
    await refuseLargeStatements(database.kysely);
    stream = (await broker().jetStream(AbortSignal.timeout(5_000))).manager;
  });
  afterEach(() => stack.disposeAsync());

  const broker = (user: 'customer' | 'calendar' | 'test' = 'test') =>
    stack.use(connectBroker({ url: nats.url(user), name: user, logger }));
  const relay = () => stack.use(startRelay({ service: 'customer', database, broker: broker('customer'), logger }));
  const append = (version: number) =>
    database.transaction((tx) => appendEvent(tx, events.customerChanged, changedCustomer(version)));
  const published = async () => (await stream.streams.info('scheduling')).state.messages;
  const position = () => database.kysely.selectFrom('outboxPosition').selectAll().executeTakeFirstOrThrow();

  /** Events that another stream contained, and the position recorded for it. */
  async function loseStreamWith(count: number): Promise<void> {
    await insertSentEvents(database.kysely, count, '1 hour');
    await sql`
      INSERT INTO outbox_position (stream_created, sequence, event_id)
      SELECT 'before', ${count}, max(id::text)::uuid FROM outbox`.execute(database.kysely);
  }

  function consume(): number[] {
    const versions: number[] = [];
    const handle = async ({ version }: { version: number }) => {
      return async () => {
        versions.push(version);
      };
    };
    const subscriptions = [subscription<MessagingSchema, CustomerChanged>(events.customerChanged, handle)];
    stack.use(
      startConsumers<MessagingSchema>({
        service: 'calendar',
        database,
        broker: broker('calendar'),
        logger,
        subscriptions,
      }),
    );
    return versions;
  }

  it('are published again in batches after a loss, and a new event does not wait for them', async () => {
    await loseStreamWith(many);
    const consumed = consume();
    relay();
    await eventually(async () => expect(await published()).toBeGreaterThan(0));
    await append(many + 1);
    await eventually(() => expect(consumed).toContain(many + 1));
    expect(consumed.length).toBeLessThan(many);
    await eventually(() => expect(consumed).toHaveLength(many + 1));
    expect(await published()).toBe(many + 1);
    await eventually(async () => expect(await position()).toMatchObject({ refillAfter: null, refillUntil: null }));
  });

  it('are published again from the beginning if the stream is lost once more meanwhile', async () => {
    await loseStreamWith(many);
    relay();
    await eventually(async () => expect(await published()).toBeGreaterThan(200));
    await stream.streams.delete('scheduling');
    await eventually(async () => expect(await published()).toBe(many));
  });

  it('are published again however long a consumer is down, and by the next relay when the first one stops', async () => {
    await loseStreamWith(many);
    const { subject } = events.customerChanged;
    await stream.consumers.add('scheduling', {
      durable_name: 'away',
      filter_subject: subject,
      ack_policy: AckPolicy.Explicit,
    });
    const first = startRelay({ service: 'customer', database, broker: broker('customer'), logger });
    await eventually(async () => expect(await published()).toBeGreaterThan(400));
    await first[Symbol.asyncDispose]();
    expect(await published()).toBeLessThan(many);
    await stream.consumers.delete('scheduling', 'away');
    relay();
    await eventually(async () => expect(await published()).toBe(many));
    await eventually(async () => expect(await position()).toMatchObject({ refillAfter: null }));
  });

  it('are deleted in batches when they are old', async () => {
    await insertSentEvents(database.kysely, many, '8 days');
    await insertProcessedEvents(database.kysely, many, '15 days');
    await insertSentEvents(database.kysely, 1, '6 days');
    await insertProcessedEvents(database.kysely, 1, '13 days');
    await insertFailures(database.kysely, '8 days', '6 days');
    stack.use(startCleanUps({ database, logger, cleanUps: messagingCleanUps }));
    await eventually(async () => {
      expect(await database.kysely.selectFrom('outbox').select('id').execute()).toHaveLength(1);
      expect(await database.kysely.selectFrom('inbox').select('eventId').execute()).toHaveLength(1);
      expect(await database.kysely.selectFrom('eventFailure').select('eventId').execute()).toHaveLength(1);
    });
  });
});

async function refuseLargeStatements(db: Kysely<MessagingSchema>): Promise<void> {
  await sql`
    CREATE FUNCTION refuse_large_statement() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF (SELECT count(*) FROM changed) > ${sql.lit(mostPerStatement)} THEN
        RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014';
      END IF;
      RETURN NULL;
    END
    $$`.execute(db);
  for (const table of ['outbox', 'inbox']) {
    await sql`CREATE TRIGGER of_update AFTER UPDATE ON ${sql.table(table)} REFERENCING NEW TABLE AS changed EXECUTE FUNCTION refuse_large_statement()`.execute(
      db,
    );
    await sql`CREATE TRIGGER of_delete AFTER DELETE ON ${sql.table(table)} REFERENCING OLD TABLE AS changed EXECUTE FUNCTION refuse_large_statement()`.execute(
      db,
    );
  }
}

async function insertSentEvents(db: Kysely<MessagingSchema>, count: number, ago: string): Promise<void> {
  const { subject } = events.customerChanged;
  const versions = Array.from({ length: count }, (_, index) => index + 1);
  const facts = JSON.stringify(versions.map((version) => changedCustomer(version)));
  await sql`
    INSERT INTO outbox (subject, data, request_id, sent_at)
    SELECT ${subject}, data, 'request', now() - ${ago}::interval FROM jsonb_array_elements(${facts}) AS data`.execute(
    db,
  );
}

async function insertProcessedEvents(db: Kysely<MessagingSchema>, count: number, ago: string): Promise<void> {
  await sql`
    INSERT INTO inbox (consumer, event_id, processed_at)
    SELECT 'test', gen_random_uuid(), now() - ${ago}::interval FROM generate_series(1, ${count}::int)`.execute(db);
}

async function insertFailures(db: Kysely<MessagingSchema>, ...ages: string[]): Promise<void> {
  await sql`
    INSERT INTO event_failure (consumer, event_id, failures, failed_at)
    SELECT 'test', gen_random_uuid(), 1, now() - age::interval FROM unnest(${ages}::text[]) AS age`.execute(db);
}
