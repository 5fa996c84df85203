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

/**
 * One kind of event and how a service handles it. Events arrive at least once and in any order.
 */
export type Subscription<Schema> = { definition: EventDefinition<unknown> } & (Handling<Schema> | Recording);

/** The inbox ensures that the effect happens once. */
interface Handling<Schema> {
  /**
   * Fetches what the effect needs, over the network if necessary, and returns the effect; undefined if there is none.
   * An effect must not overwrite newer data with an older version.
   */
  handle: (data: unknown, context: EventContext) => Promise<Effect<Schema> | undefined>;
}

/** The service itself knows which events it has recorded: there is no inbox row. Many are recorded at the same time. */
interface Recording {
  /** Resolves when the event is committed. False if it had been recorded before. */
  record: (data: unknown, context: EventContext) => Promise<boolean>;
}

type Handler<Schema, Data> = (data: Data, context: EventContext) => Promise<Effect<Schema> | undefined>;
type Recorder<Data> = (data: Data, context: EventContext) => Promise<boolean>;

/** A handler for each event that the service consumes. */
export type Handlers<Schema, Service extends DatabaseService> = {
  [Name in ConsumedEvent<Service>]: Handler<Schema, EventData<Name>>;
};

/** The same for a service that records them. */
export type Recorders<Service extends DatabaseService> = {
  [Name in ConsumedEvent<Service>]: Recorder<EventData<Name>>;
};

export function subscriptions<Schema, Service extends DatabaseService>(
  handlers: Handlers<Schema, Service>,
): Subscription<Schema>[] {
  const entries = Object.entries(handlers) as [ConsumedEvent<Service>, Handler<Schema, unknown>][];
  return entries.map(([name, handle]) => subscription<Schema, unknown>(events[name], handle));
}

export function recordings<Schema, Service extends DatabaseService>(
  recorders: Recorders<Service>,
): Subscription<Schema>[] {
  const entries = Object.entries(recorders) as [ConsumedEvent<Service>, Recorder<unknown>][];
  return entries.map(([name, record]) => ({ definition: events[name], record }));
}

export function subscription<Schema, Data>(
  definition: EventDefinition<Data>,
  handle: Handler<Schema, Data>,
): Subscription<Schema> {
  return { definition, handle: handle as Handler<Schema, unknown> };
}
