import { DomainError } from '@scheduling/errors';
import type { Database } from '@scheduling/postgres';
import type { WebhookSchema } from '../db/schema.ts';
import { findPosition, type Position } from './find-position.ts';
import { type EventsFilter, type PlacedEvent, readEvents } from './read-events.ts';

export interface PageQuery extends Omit<EventsFilter, 'after' | 'ignoreActors'> {
  /** The id of an event, `start` or `end`. */
  after: string;
}

/**
 * The events after a position, and the position of the next page. Rejects with `events.invalid` or, if some of them are
 * no longer kept, `events.expired`.
 */
export async function readPage(
  database: Database<WebhookSchema>,
  query: PageQuery,
): Promise<{ listed: PlacedEvent[]; next: Position }> {
  const position = await findPosition(database, query);
  const {
    listed,
    lastExamined = position,
    isIncomplete,
  } = await readEvents(database, { ...query, after: position.sequence, ignoreActors: [] });
  if (isIncomplete && query.after !== 'start') throw new DomainError('events.expired');
  return { listed, next: lastExamined };
}
