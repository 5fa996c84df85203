import { JetStreamApiError, type JetStreamManager, type StreamInfo } from '@nats-io/jetstream';
import { retentionMs, streamName } from '@scheduling/events';
import type { Logger } from '@scheduling/runtime';
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely';
import type { MessagingSchema, OutboxPositionTable, OutboxTable } from './schema.ts';

/** If more events of a service than this are waiting for one of its consumers, the consumer has not caught up. */
const maxBacklog = 500;
const beforeAllIds = '00000000-0000-0000-0000-000000000000';

/**
 * Compares the stream with the position of the last event that it acknowledged. If it is another stream, is shorter, or holds another event
 * there, everything sent so far has to be published again, and a second position starts to advance through the outbox.
 */
export async function detectLoss(
  db: Kysely<MessagingSchema>,
  manager: JetStreamManager,
  info: StreamInfo,
  logger: Logger,
): Promise<{ lost: boolean; refilling: boolean }> {
  const position = await db.selectFrom('outboxPosition').selectAll().executeTakeFirst();
  if (position === undefined) return { lost: false, refilling: false };
  if (await holdsPosition(manager, info, position)) return { lost: false, refilling: position.refillAfter !== null };
  await db
    .updateTable('outboxPosition')
    .set({
      streamCreated: info.created,
      sequence: 0,
      eventId: beforeAllIds,
      refillAfter: beforeAllIds,
      refillUntil: sql<Date>`clock_timestamp()`,
    })
    .execute();
  logger.warn('the stream lost events, publishing those of the last 7 days again');
  return { lost: true, refilling: true };
}

async function holdsPosition(manager: JetStreamManager, { created, state }: StreamInfo, position: Selectable<OutboxPositionTable>): Promise<boolean> {
  if (created !== position.streamCreated || state.last_seq < position.sequence) return false;
  // An event that has expired from the stream can no longer be compared.
  if (position.sequence < state.first_seq) return true;
  try {
    const message = await manager.streams.getMessage(streamName, { seq: position.sequence });
    return message?.header.get('ce-id') === position.eventId;
  } catch (error) {
    if (error instanceof JetStreamApiError) return false;
    throw error;
  }
}

/** An event that the stream acknowledged, and its sequence number there. */
export interface SentEvent {
  id: string;
  sequence: number;
}

/** Records the last of some events. */
export async function notePosition(tx: Transaction<MessagingSchema>, { created }: StreamInfo, sent: SentEvent[]): Promise<void> {
  const last = sent.reduce((one, other) => (other.sequence > one.sequence ? other : one));
  const position = { streamCreated: created, sequence: last.sequence, eventId: last.id };
  await tx
    .insertInto('outboxPosition')
    .values(position)
    .onConflict((conflict) => conflict.column('id').doUpdateSet(position))
    .execute();
}

/** An event after the second position, and whether the stream lost it: whatever was sent after the loss is in the current stream. */
export type RefillRow = Selectable<OutboxTable> & { lost: boolean };

/** By id alone, so that the primary key is used regardless of their number and of the planner's statistics. */
export function selectRefillRows(db: Kysely<MessagingSchema>, limit: number): Promise<RefillRow[]> {
  const retention = sql`make_interval(secs => ${retentionMs / 1_000})`;
  return db
    .selectFrom('outbox')
    .selectAll()
    .select(sql<boolean>`coalesce(sent_at <= (SELECT refill_until FROM outbox_position) AND sent_at > now() - ${retention}, false)`.as('lost'))
    .where('id', '>', sql<string>`(SELECT refill_after FROM outbox_position)`)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Records that everything up to this event is in the stream again. */
export async function advanceRefill(tx: Kysely<MessagingSchema>, refillAfter: string): Promise<void> {
  await tx.updateTable('outboxPosition').set({ refillAfter }).execute();
}

export async function finishRefill(db: Kysely<MessagingSchema>, logger: Logger): Promise<void> {
  await db.updateTable('outboxPosition').set({ refillAfter: null, refillUntil: null }).execute();
  logger.info('the stream contains the events of the last 7 days again');
}

/** Whether every consumer of this service's events has only a small backlog. */
export async function consumersHaveCaughtUp(manager: JetStreamManager, service: string): Promise<boolean> {
  for await (const { config, num_pending: pending, num_ack_pending: unacknowledged } of manager.consumers.list(streamName)) {
    if (config.filter_subject?.startsWith(`scheduling.${service}.`) && pending + unacknowledged > maxBacklog) return false;
  }
  return true;
}
