import type { Database } from '@scheduling/postgres';
import { describeError } from '@scheduling/runtime';
import type { Kysely, Transaction } from 'kysely';
import type { MessagingSchema } from './schema.ts';
import type { Subscription } from './subscription.ts';

/** An event as it was delivered. */
export interface ReceivedEvent {
  id: string;
  payload: Uint8Array;
  /** It may have been processed before: this is checked before doing any work. */
  mayBeRepeated: boolean;
}

/**
 * Handles an event, and commits its effect together with an inbox row. False if the event has already been processed. An event without an effect
 * leaves no row: repeated, it would have none again.
 */
export async function applyOnce<Schema extends MessagingSchema>(
  database: Database<Schema>,
  { definition, handle }: Subscription<Schema>,
  consumer: string,
  { id: eventId, payload, mayBeRepeated }: ReceivedEvent,
): Promise<boolean> {
  if (mayBeRepeated && (await isProcessed(database, consumer, eventId))) return false;
  const effect = await handle(definition.decode(payload), { eventId });
  if (effect === undefined) return true;
  return database.transaction(async (tx) => {
    const { numInsertedOrUpdatedRows } = await asMessaging(tx)
      .insertInto('inbox')
      .values({ consumer, eventId })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows !== 1n) return false;
    await effect(tx);
    return true;
  });
}

async function isProcessed<Schema extends MessagingSchema>(database: Database<Schema>, consumer: string, eventId: string): Promise<boolean> {
  const db = database.kysely as unknown as Kysely<MessagingSchema>;
  const row = await db.selectFrom('inbox').select('eventId').where('consumer', '=', consumer).where('eventId', '=', eventId).executeTakeFirst();
  return row !== undefined;
}

/** Why an event could not be processed, without the values that database errors quote. */
export function describeFailure(error: unknown): string {
  const { type, message } = describeError(error);
  return `${type}: ${message}`;
}

export function asMessaging<Schema extends MessagingSchema>(tx: Transaction<Schema>): Transaction<MessagingSchema> {
  return tx as unknown as Transaction<MessagingSchema>;
}
