import { JetStreamApiError, type JetStreamManager, type StreamInfo } from '@nats-io/jetstream';
import { headers as createHeaders } from '@nats-io/transport-node';
import type { Database } from '@scheduling/postgres';
import { type Bell, createBell, type Logger, type Metrics } from '@scheduling/runtime';
import { type Kysely, type Selectable, sql } from 'kysely';
import { setTimeout as delay } from 'node:timers/promises';
import { type Broker, type JetStream, retentionMs, streamName } from './broker.ts';
import { measureRelay } from './relay-metrics.ts';
import type { MessagingSchema, OutboxTable } from './schema.ts';

export interface RelayOptions<Schema extends MessagingSchema> {
  /** The publishing service: CloudEvents `source`. */
  service: string;
  database: Database<Schema>;
  broker: Broker;
  logger: Logger;
  /** Where the events are counted. */
  metrics?: Metrics;
}

interface Relaying<Schema extends MessagingSchema> extends RelayOptions<Schema> {
  count: (subject: string) => void;
}

const batchSize = 200;
/** Commits wake the relay; the poll finds what another replica committed. */
const pollMs = 250;
const retryMs = 1_000;
const positionCheckMs = 5_000;
const cleanUpMs = 60 * 60 * 1_000;
/** Any number, as long as nothing else in the service's database takes the same advisory lock. */
const relayLock = 7_236_001;

/**
 * Publishes the outbox to JetStream, in order of commit as far as one relay can know it, at least once. One replica's relay works at a
 * time; when it goes away another takes over. What was published stays in the outbox for 7 days, and goes out again when the stream was made
 * anew or lost its end: JetStream may lose what it acknowledged, Postgres is the truth.
 */
export function startRelay<Schema extends MessagingSchema>(options: RelayOptions<Schema>): AsyncDisposable {
  const stopping = new AbortController();
  const bell = createBell();
  options.database.onCommit(bell.ring);
  const db = options.database.kysely as unknown as Kysely<MessagingSchema>;
  const count = options.metrics ? measureRelay(db, options.metrics) : () => undefined;
  const running = runForever({ ...options, count }, bell, stopping.signal);
  return {
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      bell.ring();
      await running;
    },
  };
}

async function runForever<Schema extends MessagingSchema>(options: Relaying<Schema>, bell: Bell, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await relayWhileLeader(options, bell, signal);
    } catch (error) {
      if (signal.aborted) return;
      options.logger.warn({ err: error }, 'the outbox relay failed, trying again');
    }
    await delay(retryMs, undefined, { signal }).catch(() => undefined);
  }
}

/** The lock lives as long as its session, so a relay whose process or connection dies frees it. */
async function relayWhileLeader<Schema extends MessagingSchema>(options: Relaying<Schema>, bell: Bell, signal: AbortSignal): Promise<void> {
  const session = await options.database.pool.connect();
  const lost = new AbortController();
  session.on('error', (error) => lost.abort(error));
  try {
    const { rows } = await session.query<{ leader: boolean }>('SELECT pg_try_advisory_lock($1) AS leader', [relayLock]);
    if (rows[0]?.leader === true) await relay(options, bell, AbortSignal.any([signal, lost.signal]));
  } finally {
    // Destroys the connection, and with it the lock.
    session.release(true);
  }
}

async function relay<Schema extends MessagingSchema>(options: Relaying<Schema>, bell: Bell, signal: AbortSignal): Promise<void> {
  const db = options.database.kysely as unknown as Kysely<MessagingSchema>;
  const stream = await options.broker.jetStream(signal);
  let positionCheckedMs = 0;
  let cleanedMs = 0;
  while (!signal.aborted) {
    if (Date.now() - positionCheckedMs > positionCheckMs) {
      await refillLostEvents(db, stream.manager, await stream.manager.streams.info(streamName), options.logger);
      positionCheckedMs = Date.now();
    }
    if (Date.now() - cleanedMs > cleanUpMs) {
      await cleanUp(db);
      cleanedMs = Date.now();
    }
    const published = await publishBatch(db, stream, options);
    if (published < batchSize) await bell.wait(pollMs);
  }
}

async function publishBatch<Schema extends MessagingSchema>(
  db: Kysely<MessagingSchema>,
  stream: JetStream,
  { service, count, logger }: Relaying<Schema>,
): Promise<number> {
  const rows = await db.selectFrom('outbox').selectAll().where('sent_at', 'is', null).orderBy('id').limit(batchSize).execute();
  if (rows.length === 0) return 0;
  const results = await Promise.allSettled(
    rows.map(async (row) => {
      const { seq: sequence } = await publish(stream, row, service);
      count(row.subject);
      return { id: row.id, sequence };
    }),
  );
  const sent = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  if (sent.length > 0) {
    const info = await stream.manager.streams.info(streamName);
    await refillLostEvents(db, stream.manager, info, logger);
    await noteSent(db, info, sent);
  }
  const failure = results.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
  return rows.length;
}

/** A CloudEvent in binary mode: the attributes are headers, the body is the data. */
function publish(stream: JetStream, row: Selectable<OutboxTable>, service: string): Promise<{ seq: number }> {
  const headers = createHeaders();
  headers.set('ce-specversion', '1.0');
  headers.set('ce-id', row.id);
  headers.set('ce-source', `scheduling/${service}`);
  headers.set('ce-type', row.type);
  headers.set('ce-time', row.created_at.toISOString());
  headers.set('content-type', 'application/protobuf');
  headers.set('x-request-id', row.request_id);
  if (row.traceparent !== null) headers.set('traceparent', row.traceparent);
  return stream.client.publish(row.subject, row.payload, { msgID: row.id, headers });
}

/**
 * Nothing counts as sent without the position that tells whether the stream still holds it. Who calls this has looked whether it holds the
 * position before: past that, what it lost there would never be missed.
 */
async function noteSent(db: Kysely<MessagingSchema>, { created }: StreamInfo, sent: { id: string; sequence: number }[]): Promise<void> {
  const last = sent.reduce((one, other) => (other.sequence > one.sequence ? other : one));
  const position = { stream_created: created, sequence: last.sequence, event_id: last.id };
  await db.transaction().execute(async (tx) => {
    await tx.updateTable('outbox').set({ sent_at: sql<Date>`now()` }).where('id', 'in', sent.map((event) => event.id)).execute();
    await tx
      .insertInto('outbox_position')
      .values(position)
      .onConflict((conflict) => conflict.column('id').doUpdateSet(position))
      .execute();
  });
}

/** Sends the last 7 days again when the stream is not the one that held our last event. Consumers skip what they have had. */
async function refillLostEvents(db: Kysely<MessagingSchema>, manager: JetStreamManager, info: StreamInfo, logger: Logger): Promise<void> {
  const position = await db.selectFrom('outbox_position').selectAll().executeTakeFirst();
  if (position === undefined || (await holdsPosition(manager, info, position))) return;
  const { numUpdatedRows } = await db
    .updateTable('outbox')
    .set({ sent_at: null })
    .where('sent_at', '>', new Date(Date.now() - retentionMs))
    .executeTakeFirst();
  await db.deleteFrom('outbox_position').execute();
  logger.warn({ events: Number(numUpdatedRows) }, 'the stream lost events, the outbox sends them again');
}

async function holdsPosition(
  manager: JetStreamManager,
  { created, state }: StreamInfo,
  position: { stream_created: string; sequence: number; event_id: string },
): Promise<boolean> {
  if (created !== position.stream_created || state.last_seq < position.sequence) return false;
  // An event that has aged out of the stream cannot be compared any more.
  if (position.sequence < state.first_seq) return true;
  try {
    const message = await manager.streams.getMessage(streamName, { seq: position.sequence });
    return message?.header.get('ce-id') === position.event_id;
  } catch (error) {
    if (error instanceof JetStreamApiError) return false;
    throw error;
  }
}

/** Sent events are kept as long as the stream keeps them; an inbox row must outlive every redelivery and refill. */
async function cleanUp(db: Kysely<MessagingSchema>): Promise<void> {
  await db.deleteFrom('outbox').where('sent_at', '<', new Date(Date.now() - retentionMs)).execute();
  await db.deleteFrom('inbox').where('processed_at', '<', new Date(Date.now() - 2 * retentionMs)).execute();
}
