import { describeError } from '@scheduling/runtime';
import type { Transaction } from 'kysely';
import type { Inbox } from './inbox.ts';
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
 * Handles an event, and commits its effect together with an inbox row, unless the service records its events itself.
 * False if the event has already been processed. An event without an effect leaves no row: repeated, it would have none
 * again.
 */
export async function applyOnce<Schema extends MessagingSchema>(
  inbox: Inbox<Schema>,
  subscription: Subscription<Schema>,
  { id: eventId, payload, mayBeRepeated }: ReceivedEvent,
): Promise<boolean> {
  const decode = (): unknown => subscription.definition.decode(payload);
  if ('record' in subscription) return subscription.record(decode(), { eventId });
  if (mayBeRepeated && (await inbox.contains(eventId))) return false;
  const effect = await subscription.handle(decode(), { eventId });
  return effect === undefined || inbox.apply(eventId, effect);
}

/** Why an event could not be processed, without the values that database errors quote. */
export function describeFailure(error: unknown): string {
  const { type, message } = describeError(error);
  return `${type}: ${message}`;
}

export function asMessaging<Schema extends MessagingSchema>(tx: Transaction<Schema>): Transaction<MessagingSchema> {
  return tx as unknown as Transaction<MessagingSchema>;
}
