import type { Broker, JetStream } from '@scheduling/events';
import { createLeadership, type Database, type Leadership } from '@scheduling/postgres';
import { type Logger, lowestId, type Metrics, startLoop } from '@scheduling/runtime';
import type { Kysely, Selectable } from 'kysely';
import { encodeRow } from './outbox.ts';
import { publishTraced } from './publish-traced.ts';
import {
  advanceRefill,
  consumersHaveCaughtUp,
  detectLoss,
  finishRefill,
  markSent,
  markUnsent,
  type Position,
  positionAfter,
  selectRefillRows,
  type SentEvent,
} from './refill.ts';
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
  /** How often an active relay polls if nothing wakes it; 10 s by default. */
  pollMs?: number;
}

type OutboxRow = Selectable<OutboxTable>;

interface Relay {
  service: string;
  db: Kysely<MessagingSchema>;
  broker: Broker;
  logger: Logger;
  leadership: Leadership;
  count: (subject: string) => void;
  /** Cached until something fails. */
  stream: JetStream | undefined;
  /** The unsent events up to this one are left out until {@link rejectedUntilMs}: they cannot be published. */
  rejectedUpTo: string;
  rejectedUntilMs: number;
  /** Whether events that the stream lost are being published again. */
  refilling: boolean;
  /** When the last of them were published, on the clock of {@link performance}. */
  refilledMs: number;
  /** When the position was last compared with the stream, on the same clock. */
  comparedMs: number;
}

const batchSize = 500;
/** How many are published at once: the requests of the service have their turn before the next ones. */
const publishSize = 100;
/**
 * Commits wake the relay, in its own process directly and in others over NATS. Polling finds the events of lost
 * wake-ups: of a process that is not connected to NATS, or ended right after its commit.
 */
const defaultPollMs = 10_000;
/** How often it polls while it is not active, or after a failure. */
const attentivePollMs = 2_000;
const refillPollMs = 100;
/** How long events that cannot be published are left out. */
const rejectedMs = 2_000;
/** A round costs about as much as the events that it publishes, so those of one moment share it. */
const gatherMs = 100;
/**
 * Less than a poll, so that an idle relay compares on every poll; a commit without an event, as most consumers have,
 * does not trigger it.
 */
const compareMs = 1_000;
/**
 * However far behind consumers are, at least one batch per second is published again: a service that is down for hours
 * must not stall the refill.
 */
const slowestRefillMs = 1_000;
/** Any number that nothing else in the service's database uses as an advisory lock. */
const relayLock = 7_236_001;

/**
 * Publishes the outbox to JetStream at least once, in commit order as far as one relay can know it. Only one replica's
 * relay is active at a time; if it stops, another takes over within 2 s. Published events stay in the outbox for 7
 * days, and are published again if the stream was recreated or lost its end: JetStream may lose what it acknowledged,
 * Postgres is the source of truth. New events take priority during that.
 */
export function startRelay<Schema extends MessagingSchema>(options: RelayOptions<Schema>): AsyncDisposable {
  const { service, database, broker, logger, metrics, pollMs = defaultPollMs } = options;
  const db = database.kysely as unknown as Kysely<MessagingSchema>;
  const leadership = createLeadership(database.pool, relayLock, () => loop.wake());
  const count = metrics ? measureRelay(db, metrics) : () => undefined;
  const relay: Relay = {
    service,
    db,
    broker,
    logger,
    leadership,
    count,
    stream: undefined,
    rejectedUpTo: lowestId,
    rejectedUntilMs: 0,
    refilling: false,
    refilledMs: 0,
    comparedMs: Number.NEGATIVE_INFINITY,
  };
  const loop = startLoop({
    name: 'the outbox relay',
    logger,
    everyMs: () => pauseMs(relay, pollMs),
    gatherMs,
    batch: batchSize,
    run: (limit, signal) => relayEvents(relay, limit, signal),
  });
  database.onCommit(() => (leadership.held ? loop.wake() : broker.nudge(service)));
  broker.onNudge(service, () => {
    if (leadership.held) loop.wake();
  });
  // Wake-ups may have been lost, and NATS may have lost the stream.
  broker.onReconnect(loop.wake);
  return {
    [Symbol.asyncDispose]: async () => {
      await loop[Symbol.asyncDispose]();
      await leadership[Symbol.asyncDispose]();
    },
  };
}

function pauseMs({ refilling, leadership, stream, rejectedUpTo }: Relay, pollMs: number): number {
  if (refilling) return refillPollMs;
  const isIdle = leadership.held && stream !== undefined && rejectedUpTo === lowestId;
  return isIdle ? pollMs : attentivePollMs;
}

async function relayEvents(relay: Relay, limit: number, signal: AbortSignal): Promise<number> {
  if (!(await relay.leadership.acquire())) return 0;
  try {
    const stream = (relay.stream ??= await relay.broker.jetStream(signal));
    const published = await publishUnsent(relay, stream, limit);
    const refilled = await refill(relay, stream, limit);
    return Math.max(published, refilled);
  } catch (error) {
    relay.stream = undefined;
    throw error;
  }
}

async function publishUnsent(relay: Relay, stream: JetStream, limit: number): Promise<number> {
  const rows = await selectUnsent(relay, limit);
  if (rows.length === 0 && performance.now() - relay.comparedMs < compareMs) return 0;
  const { sent, rejected, failure } = await publishAll(relay, stream, rows, { repeated: false });
  await noteSent(relay, stream, sent, (position) => markSent(relay.db, sent, position));
  if (failure) throw failure;
  if (rejected.length > 0) {
    relay.rejectedUpTo = rows.at(-1)!.id;
    if (relay.rejectedUntilMs < performance.now()) relay.rejectedUntilMs = performance.now() + rejectedMs;
  }
  return rows.length;
}

function selectUnsent(relay: Relay, limit: number): Promise<OutboxRow[]> {
  if (relay.rejectedUntilMs < performance.now()) relay.rejectedUpTo = lowestId;
  return relay.db
    .selectFrom('outbox')
    .selectAll()
    .where('sentAt', 'is', null)
    .where('id', '>', relay.rejectedUpTo)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/**
 * The next batch of events that the stream lost, no faster than consumers process them: a new event must not wait
 * behind a million old ones.
 */
async function refill(relay: Relay, stream: JetStream, limit: number): Promise<number> {
  if (!relay.refilling) return 0;
  const isOverdue = performance.now() - relay.refilledMs >= slowestRefillMs;
  if (!isOverdue && !(await consumersHaveCaughtUp(stream.manager, relay.service))) return 0;
  const rows = await selectRefillRows(relay.db, limit);
  const last = rows.at(-1);
  if (last === undefined) {
    await finishRefill(relay.db, relay.logger);
    relay.refilling = false;
    return 0;
  }
  const lost = rows.filter((row) => row.lost);
  if (lost.length === 0) {
    await advanceRefill(relay.db, last.id);
    return rows.length;
  }
  const { sent, rejected, failure } = await publishAll(relay, stream, lost, { repeated: true });
  if (failure) throw failure;
  await markUnsent(relay.db, rejected);
  await noteSent(relay, stream, sent, (position) => advanceRefill(relay.db, last.id, position));
  relay.refilledMs = performance.now();
  return rows.length;
}

/**
 * Stores what a batch did together with its position. After a loss it is unknown which stream received the batch, so it
 * is published again.
 */
async function noteSent(
  relay: Relay,
  { manager }: JetStream,
  sent: SentEvent[],
  store: (position: Position) => Promise<void>,
): Promise<void> {
  // First: once the position moves on, an earlier loss can no longer be detected.
  const state = await detectLoss(relay.db, manager, relay.logger);
  relay.refilling = state.refilling;
  relay.comparedMs = performance.now();
  if (state.lost || sent.length === 0) return;
  await store(positionAfter(sent, state));
}

interface PublishedBatch {
  sent: SentEvent[];
  /** The ids of those that NATS rejects, or that cannot be encoded. */
  rejected: string[];
  /** The first failure among the others. */
  failure: Error | undefined;
}

/** Stops when NATS answers nothing of a part: it is away. What is rejected does not keep back the others. */
async function publishAll(
  relay: Relay,
  stream: JetStream,
  rows: OutboxRow[],
  { repeated }: { repeated: boolean },
): Promise<PublishedBatch> {
  const all: PublishedBatch = { sent: [], rejected: [], failure: undefined };
  for (let start = 0; start < rows.length; start += publishSize) {
    const { sent, rejected, failure } = await publishPart(
      relay,
      stream,
      rows.slice(start, start + publishSize),
      repeated,
    );
    all.sent.push(...sent);
    all.rejected.push(...rejected);
    all.failure ??= failure;
    if (sent.length + rejected.length === 0) break;
  }
  return all;
}

async function publishPart(
  { service, logger, count }: Relay,
  { publisher }: JetStream,
  rows: OutboxRow[],
  repeated: boolean,
): Promise<PublishedBatch> {
  const { encoded, rejected } = encodeRows(rows, logger);
  const publications = await publishTraced(
    publisher,
    encoded.map((row) => ({ ...row, service, time: row.createdAt, repeated })),
  );
  const part: PublishedBatch = { sent: [], rejected, failure: undefined };
  let rejection: Error | undefined;
  for (const [index, publication] of publications.entries()) {
    const { id, subject } = encoded[index]!;
    if ('sequence' in publication) {
      count(subject);
      part.sent.push({ id, sequence: publication.sequence });
    } else if (publication.isRejected) {
      rejection ??= publication.failure;
      part.rejected.push(id);
    } else {
      part.failure ??= publication.failure;
    }
  }
  if (rejection !== undefined)
    logger.warn(
      { err: rejection, events: part.rejected.length, firstId: part.rejected[0] },
      'NATS rejects events, retrying them later',
    );
  return part;
}

/** Those that cannot be encoded, such as kinds that only a newer version knows, wait like those that NATS rejects. */
function encodeRows(rows: OutboxRow[], logger: Logger) {
  const encoded: (OutboxRow & { type: string; payload: Uint8Array })[] = [];
  const rejected: string[] = [];
  for (const row of rows) {
    try {
      encoded.push({ ...row, ...encodeRow(row) });
    } catch (error) {
      rejected.push(row.id);
      logger.warn({ err: error, id: row.id, subject: row.subject }, 'an event cannot be encoded, retrying it later');
    }
  }
  return { encoded, rejected };
}
