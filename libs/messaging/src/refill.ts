import { JetStreamApiError, type JetStreamManager, type StreamInfo } from '@nats-io/jetstream';
import { retentionMs, streamName } from '@scheduling/events';
import { type Logger, lowestId } from '@scheduling/runtime';
import { type Kysely, type Selectable, sql } from 'kysely';
import type { MessagingSchema, OutboxPositionTable, OutboxTable } from './schema.ts';

/** If more events of a service than this are waiting for one of its consumers, the consumer has not caught up. */
const maxBacklog = 500;

/** The event at which the stream was when it last acknowledged some. */
export type Position = Pick<Selectable<OutboxPositionTable>, 'streamCreated' | 'sequence' | 'eventId'>;

/** What the stream contains of what it acknowledged. */
export interface StreamState {
  /** When the stream was created, which identifies it. */
  created: string;
  /** Whether it has lost events since the last comparison. */
  lost: boolean;
  /** Whether lost events still have to be published again. */
  refilling: boolean;
}

/**
 * Compares the stream with the position of the last event that it acknowledged. If it is another stream, is shorter, or
 * holds another event there, everything sent so far has to be published again, and a second position starts to advance
 * through the outbox.
 */
export async function detectLoss(
  db: Kysely<MessagingSchema>,
  manager: JetStreamManager,
  logger: Logger,
): Promise<StreamState> {
  const position = await db.selectFrom('outboxPosition').selectAll().executeTakeFirst();
  // Together, because NATS then reads and answers them together.
  const [info, eventId] = await Promise.all([
    manager.streams.info(streamName),
    position && readEventId(manager, position.sequence),
  ]);
  const { created } = info;
  if (position === undefined) return { created, lost: false, refilling: false };
  if (holdsPosition(info, eventId, position)) return { created, lost: false, refilling: position.refillAfter !== null };
  await db
    .updateTable('outboxPosition')
    .set({
      streamCreated: created,
      sequence: 0,
      eventId: lowestId,
      refillAfter: lowestId,
      refillUntil: sql<Date>`clock_timestamp()`,
    })
    .execute();
  logger.warn('the stream lost events, publishing those of the last 7 days again');
  return { created, lost: true, refilling: true };
}

function holdsPosition({ created, state }: StreamInfo, eventId: string | undefined, position: Position): boolean {
  if (created !== position.streamCreated || state.last_seq < position.sequence) return false;
  // An event that has expired from the stream can no longer be compared.
  return position.sequence < state.first_seq || eventId === position.eventId;
}

/** The id of the event with this number in the stream; undefined if there is none. */
async function readEventId(manager: JetStreamManager, sequence: number): Promise<string | undefined> {
  try {
    const message = await manager.streams.getMessage(streamName, { seq: sequence });
    return message?.header.get('ce-id');
  } catch (error) {
    if (error instanceof JetStreamApiError) return undefined;
    throw error;
  }
}

/** An event that the stream acknowledged, and its sequence number there. */
export interface SentEvent {
  id: string;
  sequence: number;
}

/** The position after some events. */
export function positionAfter(sent: SentEvent[], { created }: StreamState): Position {
  const last = sent.reduce((one, other) => (other.sequence > one.sequence ? other : one));
  return { streamCreated: created, sequence: last.sequence, eventId: last.id };
}

/** Marks events as sent, and records the position after them, in one statement. */
export async function markSent(db: Kysely<MessagingSchema>, sent: SentEvent[], position: Position): Promise<void> {
  await db
    .with('noted', (query) =>
      query
        .insertInto('outboxPosition')
        .values(position)
        .onConflict((conflict) => conflict.column('id').doUpdateSet(position)),
    )
    .updateTable('outbox')
    .set({ sentAt: sql<Date>`clock_timestamp()` })
    .where('id', '=', sql<string>`ANY(${sent.map(({ id }) => id)}::uuid[])`)
    .execute();
}

/** Records that NATS has rejected events that it once acknowledged: they count as not published. */
export async function markUnsent(db: Kysely<MessagingSchema>, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('outbox')
    .set({ sentAt: null })
    .where('id', '=', sql<string>`ANY(${ids}::uuid[])`)
    .execute();
}

/**
 * An event after the second position, and whether the stream lost it: whatever was sent after the loss is in the
 * current stream.
 */
export type RefillRow = Selectable<OutboxTable> & { lost: boolean };

/** By id alone, so that the primary key is used regardless of their number and of the planner's statistics. */
export function selectRefillRows(db: Kysely<MessagingSchema>, limit: number): Promise<RefillRow[]> {
  const retention = sql`make_interval(secs => ${retentionMs / 1_000})`;
  return db
    .selectFrom('outbox')
    .selectAll()
    .select(
      sql<boolean>`coalesce(sent_at <= (SELECT refill_until FROM outbox_position) AND sent_at > now() - ${retention}, false)`.as(
        'lost',
      ),
    )
    .where('id', '>', sql<string>`(SELECT refill_after FROM outbox_position)`)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/**
 * Records that everything up to this event is in the stream again, and the position if events were published for that.
 */
export async function advanceRefill(
  db: Kysely<MessagingSchema>,
  refillAfter: string,
  position?: Position,
): Promise<void> {
  await db
    .updateTable('outboxPosition')
    .set({ ...position, refillAfter })
    .execute();
}

export async function finishRefill(db: Kysely<MessagingSchema>, logger: Logger): Promise<void> {
  await db.updateTable('outboxPosition').set({ refillAfter: null, refillUntil: null }).execute();
  logger.info('the stream contains the events of the last 7 days again');
}

/** Whether every consumer of this service's events has only a small backlog. */
export async function consumersHaveCaughtUp(manager: JetStreamManager, service: string): Promise<boolean> {
  for await (const { config, num_pending: pending, num_ack_pending: unacknowledged } of manager.consumers.list(
    streamName,
  )) {
    if (config.filter_subject?.startsWith(`scheduling.${service}.`) && pending + unacknowledged > maxBacklog)
      return false;
  }
  return true;
}
