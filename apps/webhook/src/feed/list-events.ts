import { DomainError, type FieldError } from '@scheduling/errors';
import { isCrmEventType, notACrmEventType } from '@scheduling/events';
import type { WebhookDependencies } from '../dependencies.ts';
import { describeEvents, type EventJson } from './describe-events.ts';
import { readPage } from './read-page.ts';

export interface EventsQuery {
  crmId: string;
  /** The id of an event, `start` or `end`. */
  after: string;
  /** From 1 to 1,000. */
  limit: number;
  /** Empty: all. */
  types: string[];
  providerReference?: string | undefined;
}

export interface EventsPage {
  events: EventJson[];
  /** The position of the next page; empty if there are no events. */
  nextAfter: string;
}

/**
 * The events after a position, oldest first. A page that lists only some types, or one provider, looks at a bounded
 * number of events, so it may have fewer than the limit, or none, although more follow. Rejects with `events.invalid`,
 * `events.expired` or `provider.not_found`.
 */
export async function listEvents(dependencies: WebhookDependencies, query: EventsQuery): Promise<EventsPage> {
  const { crmId, after, limit, types, providerReference } = query;
  const errors = types
    .filter((type) => !isCrmEventType(type))
    .map((type): FieldError => ({ pointer: '/types', detail: `${type || 'an empty name'} ${notACrmEventType}` }));
  if (errors.length > 0) throw new DomainError('events.invalid', { errors });
  const providerId =
    providerReference === undefined ? null : await dependencies.providers.requireId({ crmId, providerReference });
  const { listed, next } = await readPage(dependencies.database, { crmId, after, limit, types, providerId });
  return { events: await describeEvents(dependencies, crmId, listed), nextAfter: next.id };
}
