import { callFunctionForEach, type Database } from '@scheduling/postgres';
import { createBatcher, inSpan } from '@scheduling/runtime';
import { type Kysely, sql, type Transaction } from 'kysely';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { MessagingSchema } from './schema.ts';
import type { Effect, EffectCall } from './subscription.ts';

/** The events that a consumer has processed. */
export interface Inbox<Schema> {
  contains(eventId: string): Promise<boolean>;
  /** Commits the effect of an event together with its inbox row. False, without an effect, if there is one already. */
  apply(eventId: string, effect: Effect<Schema>): Promise<boolean>;
}

interface ReadyEvent<Schema> {
  eventId: string;
  effect: Effect<Schema>;
}

/**
 * An effect that has to wait longer for a lock, in milliseconds, fails, and its event is delivered again later: the
 * others do not wait with it. This is less than the time after which Postgres looks for deadlocks, so none arises from
 * the locks that several effects hold together.
 */
const lockTimeoutMs = 100;

/** Effects that are ready at about the same time share a transaction; if it fails, each of them gets its own. */
export function createInbox<Schema extends MessagingSchema>(
  database: Database<Schema>,
  consumer: string,
): Inbox<Schema> {
  const commit = createBatcher<ReadyEvent<Schema>, boolean>((events) => commitEffects(database, consumer, events));
  return {
    contains: (eventId) => isProcessed(database.kysely as unknown as Kysely<MessagingSchema>, consumer, eventId),
    apply: (eventId, effect) =>
      inSpan('commit effect', { kind: 'INTERNAL' }, () => {
        const inContextOfEvent = AsyncLocalStorage.snapshot();
        return commit({
          eventId,
          effect: typeof effect === 'function' ? (tx) => inContextOfEvent(effect, tx) : effect,
        });
      }),
  };
}

async function isProcessed(db: Kysely<MessagingSchema>, consumer: string, eventId: string): Promise<boolean> {
  const row = await db
    .selectFrom('inbox')
    .select('eventId')
    .where('consumer', '=', consumer)
    .where('eventId', '=', eventId)
    .executeTakeFirst();
  return row !== undefined;
}

/** Whether each of them took effect, or had been processed before. */
async function commitEffects<Schema extends MessagingSchema>(
  database: Database<Schema>,
  consumer: string,
  events: ReadyEvent<Schema>[],
): Promise<boolean[]> {
  return database.transaction(async (tx) => {
    const added = await addToInbox(
      tx,
      consumer,
      events.map(({ eventId }) => eventId),
    );
    // Of an event that was delivered twice, only the first.
    const applied = events.map(({ eventId }) => added.delete(eventId));
    await runEffects(
      tx,
      events.filter((_, index) => applied[index]).map(({ effect }) => effect),
    );
    return applied;
  });
}

/** In their order. */
async function runEffects<Schema>(tx: Transaction<Schema>, effects: Effect<Schema>[]): Promise<void> {
  let calls: EffectCall[] = [];
  const makeCalls = async (): Promise<void> => {
    const [first] = calls;
    if (first !== undefined)
      await callFunctionForEach(
        tx,
        first.name,
        calls.map(({ request }) => request),
      );
    calls = [];
  };
  for (const effect of effects) {
    if (typeof effect === 'function' || (calls.length > 0 && calls[0]!.name !== effect.name)) await makeCalls();
    if (typeof effect === 'function') await effect(tx);
    else calls.push(effect);
  }
  await makeCalls();
}

/**
 * Returns those that were not in it. They are added in a fixed order, because another process may be adding the same
 * ones.
 */
async function addToInbox<Schema>(tx: Transaction<Schema>, consumer: string, eventIds: string[]): Promise<Set<string>> {
  const { rows } = await sql<{ eventId: string }>`
    INSERT INTO inbox (consumer, event_id)
    SELECT ${consumer}, event_id
      FROM set_config('lock_timeout', ${String(lockTimeoutMs)}, true), unnest(${eventIds.toSorted()}::uuid[]) AS event_id
    ON CONFLICT DO NOTHING
    RETURNING event_id`.execute(tx);
  return new Set(rows.map(({ eventId }) => eventId));
}
