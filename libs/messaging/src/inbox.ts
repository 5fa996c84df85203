import type { Database } from '@scheduling/postgres';
import { type Kysely, sql, type Transaction } from 'kysely';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { MessagingSchema } from './schema.ts';
import type { Effect } from './subscription.ts';

/** The events that a consumer has processed. */
export interface Inbox<Schema> {
  contains(eventId: string): Promise<boolean>;
  /** Commits the effect of an event together with its inbox row. False, without an effect, if there is one already. */
  apply(eventId: string, effect: Effect<Schema>): Promise<boolean>;
}

/** An effect that waits longer for a lock, in milliseconds, fails, and its event is delivered again: others must not wait with it. */
const lockTimeoutMs = 100;

interface ReadyEvent<Schema> {
  eventId: string;
  effect: Effect<Schema>;
  resolve: (applied: boolean) => void;
  reject: (error: unknown) => void;
}

/**
 * Effects that are ready while the previous transaction is running share the next one; none waits for others to come. If it fails, it has had no effect,
 * and each of them gets a transaction of its own. The lock timeout is shorter than the time after which Postgres looks for deadlocks, so a transaction
 * that holds locks for several effects gives way before that, and one with a single effect takes its locks as if there were no others.
 */
export function createInbox<Schema extends MessagingSchema>(database: Database<Schema>, consumer: string): Inbox<Schema> {
  const ready: ReadyEvent<Schema>[] = [];
  let isRunning = false;

  async function proceed(): Promise<void> {
    if (isRunning) return;
    isRunning = true;
    while (ready.length > 0) await commit(ready.splice(0));
    isRunning = false;
  }

  /** Never rejects. */
  async function commit(events: ReadyEvent<Schema>[]): Promise<void> {
    try {
      const applied = await commitEffects(database, consumer, events);
      for (const event of events) event.resolve(applied.has(event));
    } catch (error) {
      if (events.length === 1) events[0]!.reject(error);
      else for (const event of events) void commit([event]);
    }
  }

  return {
    contains: (eventId) => isProcessed(database.kysely as unknown as Kysely<MessagingSchema>, consumer, eventId),
    apply: (eventId, effect) =>
      new Promise((resolve, reject) => {
        const inContextOfEvent = AsyncLocalStorage.snapshot();
        ready.push({ eventId, effect: (tx) => inContextOfEvent(effect, tx), resolve, reject });
        // After everything that became ready together with this event.
        if (ready.length === 1) setImmediate(() => void proceed());
      }),
  };
}

/** Returns the events that had not been processed before. */
async function commitEffects<Schema extends MessagingSchema>(
  database: Database<Schema>,
  consumer: string,
  events: ReadyEvent<Schema>[],
): Promise<Set<ReadyEvent<Schema>>> {
  return database.transaction(async (tx) => {
    const added = await addToInbox(tx, consumer, events.map(({ eventId }) => eventId));
    // Of an event that was delivered twice, only the first.
    const applied = events.filter(({ eventId }) => added.delete(eventId));
    for (const { effect } of applied) await effect(tx);
    return new Set(applied);
  });
}

/** Returns those that were not in it. In a fixed order: another process may be adding the same ones. */
async function addToInbox<Schema>(tx: Transaction<Schema>, consumer: string, eventIds: string[]): Promise<Set<string>> {
  const { rows } = await sql<{ eventId: string }>`
    INSERT INTO inbox (consumer, event_id)
    SELECT ${consumer}, event_id
      FROM set_config('lock_timeout', ${String(lockTimeoutMs)}, true), unnest(${eventIds.toSorted()}::uuid[]) AS event_id
    ON CONFLICT DO NOTHING
    RETURNING event_id`.execute(tx);
  return new Set(rows.map(({ eventId }) => eventId));
}

async function isProcessed(db: Kysely<MessagingSchema>, consumer: string, eventId: string): Promise<boolean> {
  const row = await db.selectFrom('inbox').select('eventId').where('consumer', '=', consumer).where('eventId', '=', eventId).executeTakeFirst();
  return row !== undefined;
}
