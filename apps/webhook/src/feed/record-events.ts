import type { Database } from '@scheduling/postgres';
import { type Selectable, sql } from 'kysely';
import type { IncomingEventTable, WebhookSchema } from '../db/schema.ts';
import { numbersOf, readLatestVersions, subjectsOf } from './latest-versions.ts';
import { orderEvents, subjectsThatDecide } from './order-events.ts';

/** An event of another service, as it arrives. */
export type IncomingEvent = Omit<Selectable<IncomingEventTable>, 'arrivedAt'>;

export interface Recorded {
  /** The ids of the events that were in the feed before, or were waiting and still are. */
  repeated: string[];
  /** Whether events wait for their place, these or others. */
  hasWaiting: boolean;
}

/**
 * Writes events that have just arrived to the feed, in the order of {@link orderEvents}. Those whose predecessors are
 * missing wait in `incoming_event`. An event that arrives twice is recorded once.
 *
 * @param waitMs how long an event waits for the first event of what it names
 */
export async function recordEvents(
  database: Pick<Database<WebhookSchema>, 'kysely'>,
  arrived: IncomingEvent[],
  waitMs: number,
): Promise<Recorded> {
  const byId = new Map(arrived.map((event) => [`${event.id} ${event.crmId}`, event]));
  const events = [...byId.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const subjects = subjectsOf(events, (event) => subjectsThatDecide(event, waitMs));
  const latest = await readLatestVersions(database, subjects);
  const placed = orderEvents(events, numbersOf(latest), { limit: Number.POSITIVE_INFINITY, waitMs });
  const isPlaced = new Set(placed);
  return writeEvents(database, { placed, waiting: events.filter((event) => !isPlaced.has(event)) });
}

/** See record-events.sql. */
export async function writeEvents(
  { kysely }: Pick<Database<WebhookSchema>, 'kysely'>,
  { placed, waiting }: { placed: IncomingEvent[]; waiting: IncomingEvent[] },
): Promise<Recorded> {
  const request = {
    events: [
      ...placed.map((event) => ({ ...event, waits: false })),
      ...waiting.map((event) => ({ ...event, waits: true })),
    ],
  };
  const { rows } = await sql<{
    recorded: Recorded;
  }>`SELECT record_events(${JSON.stringify(request)}::jsonb) AS recorded`.execute(kysely);
  return rows[0]!.recorded;
}
