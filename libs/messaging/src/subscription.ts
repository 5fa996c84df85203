import { type ConsumedEvent, type EventData, type EventDefinition, events } from '@scheduling/events';
import type { DatabaseService } from '@scheduling/runtime';
import type { Transaction } from 'kysely';

/** What a handler knows about an event besides its data. */
export interface EventContext {
  eventId: string;
}

/**
 * The effect of an event, in the transaction that also records the event as processed. It shares the transaction with
 * those of other events, and runs again if that is rolled back, so it only writes to the database. The call of a SQL
 * function shares a statement, too, with those that follow it.
 */
export type Effect<Schema> = ((tx: Transaction<Schema>) => Promise<void>) | EffectCall;

/** A call of a SQL function, `name(request jsonb) RETURNS jsonb`, whose answer is of no interest. */
export interface EffectCall {
  name: string;
  request: { crmId: string };
}

/** One kind of event and how a service handles it. */
export interface Subscription<Schema> {
  definition: EventDefinition<unknown>;
  /**
   * Fetches what the effect needs, over the network if necessary, and returns the effect; undefined if there is none.
   * Events arrive at least once and in any order: the inbox ensures that the effect happens once, and an effect must
   * not overwrite newer data with an older version.
   */
  handle(data: unknown, context: EventContext): Promise<Effect<Schema> | undefined>;
}

type Handler<Schema, Data> = (data: Data, context: EventContext) => Promise<Effect<Schema> | undefined>;

/** A handler for each event that the service consumes. */
export type Handlers<Schema, Service extends DatabaseService> = {
  [Name in ConsumedEvent<Service>]: Handler<Schema, EventData<Name>>;
};

export function subscriptions<Schema, Service extends DatabaseService>(
  handlers: Handlers<Schema, Service>,
): Subscription<Schema>[] {
  const entries = Object.entries(handlers) as [ConsumedEvent<Service>, Handler<Schema, unknown>][];
  return entries.map(([name, handle]) => subscription<Schema, unknown>(events[name], handle));
}

export function subscription<Schema, Data>(
  definition: EventDefinition<Data>,
  handle: Handler<Schema, Data>,
): Subscription<Schema> {
  return { definition, handle };
}
