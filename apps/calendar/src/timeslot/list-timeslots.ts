import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { readCursor } from '@scheduling/runtime';
import { type Kysely, sql } from 'kysely';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { pageCursor, type PagePosition } from '../page-cursor.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { readWithRememberedProvider } from '../provider/remembered-providers.ts';
import { type Continuation, decodeContinuation, encodeContinuation, maxRows } from './continuation.ts';
import { type PartScope, readPart } from './read-part.ts';
import type { TimeslotRecord } from './timeslot.ts';

interface TimeslotsQuery {
  crmId: string;
  providerReference: string;
  resourceReference: string;
  /** Date-times as in the interface. */
  from: string;
  to: string;
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
  /** Absent for the first part. */
  continuation?: string | undefined;
}

export interface TimeslotsPart {
  timeslots: TimeslotRecord[];
  /** Whether the first timeslot is the one with which the previous part ended. */
  continued: boolean;
  /** Absent in the last part. */
  continuation?: string | undefined;
  /** Set in the first part of a page if there is another page. */
  nextCursor?: string | undefined;
}

/**
 * The list of timeslots (interface 4.1), or the rest of another answer, in parts of bounded size: the memory that one
 * takes does not depend on what is stored. Each part has its own snapshot; where the page ends is decided by the first.
 * A part is one round trip for a provider that the process remembers, and the first part of a page is two. Rejects with
 * `timeslot.invalid` or `provider.not_found`.
 */
export async function listTimeslots(dependencies: CalendarDependencies, query: TimeslotsQuery): Promise<TimeslotsPart> {
  const given = query.continuation === undefined ? undefined : readContinuation(query.continuation);
  return readWithRememberedProvider(dependencies, query, async (provider) => {
    const { scope, start, nextCursor } = await findPart(dependencies, query, provider, given);
    const part = await readPart(dependencies.database.kysely, scope, start);
    if (part === 'provider_changed') return part;
    const { rest, ...others } = part;
    return { ...others, continuation: rest && encodeContinuation(rest), nextCursor };
  });
}

function readContinuation(text: string): Continuation {
  const continuation = decodeContinuation(text);
  if (continuation !== undefined) return continuation;
  throw new DomainError('timeslot.invalid', {
    errors: [{ pointer: '/continuation', detail: 'is not a valid continuation' }],
  });
}

interface FoundPart {
  scope: PartScope;
  start: Continuation;
  nextCursor?: string | undefined;
}

/** What belongs to a part, and where it begins: as a continuation says, or with the page. */
async function findPart(
  { database, archiveAfterDays }: CalendarDependencies,
  query: TimeslotsQuery,
  { crmId, id: providerId, version: providerVersion, timeZone }: ProviderRow,
  given?: Continuation,
): Promise<FoundPart> {
  const scope = { crmId, providerId, providerVersion, archiveAfterDays };
  if (given !== undefined && 'ids' in given) return { scope, start: given };
  const { filter, after } = readQuery(query, providerId, timeZone);
  const { resourceReference, from, to } = filter;
  const listScope = { ...scope, resourceReference, from, to };
  if (given !== undefined) return { scope: listScope, start: given };
  const { last, nextCursor } = await findPageEnd(database.kysely, filter, after, query.limit);
  return { scope: listScope, start: { timeslot: after, until: last, rows: maxRows }, nextCursor };
}

interface TimeslotsFilter {
  crmId: string;
  providerId: string;
  resourceReference: string;
  from: Date;
  to: Date;
}

function readQuery(
  query: TimeslotsQuery,
  providerId: string,
  timeZone: string,
): { filter: TimeslotsFilter; after: PagePosition | undefined } {
  const errors = collectFieldErrors();
  const from = parseDateTime(query.from, timeZone);
  const to = parseDateTime(query.to, timeZone);
  if (to <= from) errors.add('/to', 'must be after from');
  const after = readCursor(pageCursor, query.cursor, errors);
  errors.throwIfAny('timeslot.invalid');
  return { filter: { crmId: query.crmId, providerId, resourceReference: query.resourceReference, from, to }, after };
}

/** The last timeslot of a page that has as many as it may, and the cursor of the next one. */
async function findPageEnd(
  db: Kysely<CalendarSchema>,
  filter: TimeslotsFilter,
  after: PagePosition | undefined,
  limit: number | undefined,
): Promise<{ last?: PagePosition | undefined; nextCursor?: string | undefined }> {
  if (limit === undefined) return {};
  const [last, next] = await selectPageEnd(db, filter, after, limit).execute();
  return { last, nextCursor: last && next && pageCursor.encode(last) };
}

/** The last position of a page, and the first of the next one. */
export function selectPageEnd(
  db: Kysely<CalendarSchema>,
  filter: TimeslotsFilter,
  after: PagePosition | undefined,
  limit: number,
) {
  const query = db
    .selectFrom('timeslot')
    .select(['startsAt', 'id'])
    .where('crmId', '=', filter.crmId)
    .where('providerId', '=', filter.providerId)
    .where('resourceReference', '=', filter.resourceReference)
    .where('startsAt', '<', filter.to)
    .where('endsAt', '>', filter.from)
    .orderBy('startsAt')
    .orderBy('id')
    .offset(limit - 1)
    .limit(2);
  return after === undefined
    ? query
    : query.where(sql<boolean>`(starts_at, id) > (${after.startsAt}::timestamptz, ${after.id}::uuid)`);
}
