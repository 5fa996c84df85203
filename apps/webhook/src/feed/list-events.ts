import { DomainError, type FieldError } from '@scheduling/errors';
import type { Database } from '@scheduling/postgres';
import { isUuid } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';
import type { WebhookDependencies } from '../dependencies.ts';
import { describeEvents, type EventJson, type StoredEvent } from '../references/describe-events.ts';
import { requireProviderId } from '../references/provider-names.ts';
import { isEventType } from './event-types.ts';
import { keptDays } from './start-event-clean-up.ts';

export interface EventsQuery {
  crmId: string;
  /** The id of an event, or `end`; empty: the beginning. */
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

/** How many events a page looks at if it does not list all of them. */
const maxExamined = 10_000;

/**
 * The events after a position, oldest first. A page that lists only some types, or one provider, looks at a bounded number of events, so it may have fewer
 * than the limit, or none, although more follow. Rejects with `events.invalid`, `events.expired` or `provider.not_found`.
 */
export async function listEvents(dependencies: WebhookDependencies, query: EventsQuery): Promise<EventsPage> {
  const { crmId, limit, types, providerReference } = query;
  const errors = types.filter((type) => !isEventType(type)).map((type): FieldError => ({ pointer: '/types', detail: `${type} is no type of event` }));
  if (errors.length > 0) throw new DomainError('events.invalid', { errors });
  const providerId = providerReference === undefined ? undefined : await requireProviderId(dependencies, crmId, providerReference);
  const position = await findPosition(dependencies.database, query);
  const { listed, lastExamined } = await readEvents(dependencies.database, { crmId, position, limit, types, providerId });
  const events = await describeEvents(dependencies, crmId, listed);
  // A full page ends with its last event; events behind it may have been looked at.
  return { events, nextAfter: (listed.length === limit ? events.at(-1)?.id : lastExamined) ?? position.id };
}

interface Position {
  /** Empty before the first event. */
  id: string;
  sequence: number;
}

const beginning: Position = { id: '', sequence: 0 };

async function findPosition({ kysely }: Database<WebhookSchema>, { crmId, after }: EventsQuery): Promise<Position> {
  if (after === '') return beginning;
  const events = kysely.selectFrom('event').select(['id', 'sequence']).where('crmId', '=', crmId);
  if (after === 'end') return (await events.orderBy('sequence', 'desc').limit(1).executeTakeFirst()) ?? beginning;
  const found = isUuid(after) ? await events.where('id', '=', after).executeTakeFirst() : undefined;
  if (found !== undefined) return found;
  if (isUuid(after) && (await isOlderThanKept(kysely, after))) throw new DomainError('events.expired');
  throw new DomainError('events.invalid', { errors: [{ pointer: '/after', detail: 'is no event of this CRM' }] });
}

/** By the time that the id contains. */
async function isOlderThanKept(db: Database<WebhookSchema>['kysely'], id: string): Promise<boolean> {
  const { rows } = await sql<{ isOld: boolean | null }>`
    SELECT uuid_extract_timestamp(${id}::uuid) < now() - make_interval(days => ${keptDays}) AS is_old`.execute(db);
  return rows[0]!.isOld === true;
}

interface EventsFilter {
  crmId: string;
  position: Position;
  limit: number;
  types: string[];
  providerId: string | undefined;
}

/** In one statement, so that no event is recorded between the last one listed and the last one looked at. */
async function readEvents(
  { kysely }: Database<WebhookSchema>,
  { crmId, position, limit, types, providerId }: EventsFilter,
): Promise<{ listed: StoredEvent[]; lastExamined: string | undefined }> {
  const isFiltered = types.length > 0 || providerId !== undefined;
  const { rows } = await sql<(StoredEvent & { lastExamined: string }) | { id: null; lastExamined: string }>`
    WITH examined AS MATERIALIZED (
      SELECT * FROM event WHERE crm_id = ${crmId} AND sequence > ${position.sequence} ORDER BY sequence LIMIT ${isFiltered ? maxExamined : limit}
    )
    SELECT listed.*, last_examined.id AS last_examined
      FROM (SELECT id FROM examined ORDER BY sequence DESC LIMIT 1) AS last_examined
      LEFT JOIN (
        SELECT crm_id, id, type, subject_id, version, provider_id, appointment_id, customer_id, state, previous_state, actor, sequence,
               coalesce(uuid_extract_timestamp(id), recorded_at) AS occurred_at
          FROM examined
         WHERE (${types.length} = 0 OR type = ANY (${types}::text[])) AND (${providerId ?? null}::uuid IS NULL OR provider_id = ${providerId ?? null}::uuid)
         ORDER BY sequence
         LIMIT ${limit}
      ) AS listed ON true
     ORDER BY sequence`.execute(kysely);
  return { listed: rows.filter((row) => row.id !== null), lastExamined: rows[0]?.lastExamined };
}
