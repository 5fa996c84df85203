import { DomainError } from '@scheduling/errors';
import { type Kysely, sql } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { encodeCursor, type PagePosition } from '../page-cursor.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { type Continuation, decodeContinuation, encodeContinuation, maxRows } from './continuation.ts';
import { readQuery, selectTimeslotsPart, type TimeslotsFilter, type TimeslotsQuery } from './list-timeslots.ts';
import { type PartEnd, type PartScope, readPart } from './read-part.ts';
import { type TimeslotRecord, type TimeslotRow, withAppointments } from './timeslot.ts';

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
 * The list of timeslots (interface 4.1), or the rest of another answer, in parts of bounded size: the memory that one takes does not depend on what
 * is stored. Each part has its own snapshot; where the page ends is decided by the first. Rejects with `timeslot.invalid` or `provider.not_found`.
 *
 * @param query its continuation is empty for the first part
 */
export async function listTimeslotsPart(dependencies: CalendarDependencies, query: TimeslotsQuery & { continuation: string }): Promise<TimeslotsPart> {
  const provider = await requireProvider(dependencies, query);
  const db = dependencies.database.kysely;
  const scope = { crmId: query.crmId, providerId: provider.id, archiveAfterDays: dependencies.archiveAfterDays };
  const given = query.continuation === '' ? undefined : readContinuation(query.continuation);
  if (given !== undefined && 'ids' in given) return continueWith(db, scope, given, await selectTimeslots(db, scope, given.ids).execute());
  const { filter, after } = readQuery(query, provider.id, provider.timeZone);
  if (given !== undefined) return continueWith(db, scope, given, await selectRestOfPage(db, filter, given).execute());
  const { last, nextCursor } = await findPageEnd(db, filter, after, query.limit);
  const start = { timeslot: after, until: last, rows: maxRows };
  return { ...(await continueWith(db, scope, start, await selectRestOfPage(db, filter, start).execute())), nextCursor };
}

/** The given timeslots with their appointments: all of them, or the first part, after which {@link listTimeslotsPart} reads the others. */
export async function readAnswer(
  db: Kysely<CalendarSchema>,
  scope: PartScope,
  rows: TimeslotRow[],
  inParts: boolean,
): Promise<Pick<TimeslotsPart, 'timeslots' | 'continuation'>> {
  if (!inParts) return { timeslots: await withAppointments(db, scope.crmId, rows, scope.archiveAfterDays) };
  return continueWith(db, scope, { ids: rows.map(({ id }) => id), rows: maxRows }, rows);
}

function readContinuation(text: string): Continuation {
  const continuation = decodeContinuation(text);
  if (continuation !== undefined) return continuation;
  throw new DomainError('timeslot.invalid', { errors: [{ pointer: '/continuation', detail: 'is not a valid continuation' }] });
}

async function continueWith(db: Kysely<CalendarSchema>, scope: PartScope, start: Continuation, rows: TimeslotRow[]): Promise<TimeslotsPart> {
  const previous = 'ids' in start ? start.ids[0] : start.timeslot?.id;
  const continued = start.appointment !== undefined && rows[0]?.id === previous;
  const { timeslots, end } = await readPart(db, scope, rows, { after: continued ? start.appointment : undefined, rows: start.rows });
  return { timeslots, continued, continuation: end && encodeContinuation(restAfter(start, rows, end)) };
}

function restAfter(start: Continuation, rows: TimeslotRow[], { index, appointment, nextRows }: PartEnd): Continuation {
  if ('ids' in start) return { ids: rows.slice(appointment === undefined ? index + 1 : index).map(({ id }) => id), appointment, rows: nextRows };
  const { startsAt, id } = rows[index]!;
  return { timeslot: { startsAt, id }, until: start.until, appointment, rows: nextRows };
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
  return { last, nextCursor: last && next && encodeCursor(last) };
}

/** The last position of a page, and the first of the next one. */
export function selectPageEnd(db: Kysely<CalendarSchema>, filter: TimeslotsFilter, after: PagePosition | undefined, limit: number) {
  return selectTimeslotsPart(db, filter, after, 2)
    .clearSelect()
    .select(['startsAt', 'id'])
    .offset(limit - 1);
}

/** One more than the part may have: each is at least one row. */
export function selectRestOfPage(db: Kysely<CalendarSchema>, filter: TimeslotsFilter, { timeslot, until, appointment, rows }: Exclude<Continuation, { ids: string[] }>) {
  let query = selectTimeslotsPart(db, filter, appointment === undefined ? timeslot : undefined, rows + 1);
  if (appointment !== undefined && timeslot !== undefined) query = query.where(sql<boolean>`(starts_at, id) >= (${timeslot.startsAt}::timestamptz, ${timeslot.id}::uuid)`);
  if (until !== undefined) query = query.where(sql<boolean>`(starts_at, id) <= (${until.startsAt}::timestamptz, ${until.id}::uuid)`);
  return query;
}

/** In the order of the ids, without those that have been deleted. */
export function selectTimeslots(db: Kysely<CalendarSchema>, { crmId, providerId }: PartScope, ids: string[]) {
  return db
    .selectFrom('timeslot')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .where(sql<boolean>`id = ANY(${ids}::uuid[])`)
    .orderBy(sql`array_position(${ids}::uuid[], id)`);
}
