import { type Kysely, sql } from 'kysely';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { collectFieldErrors } from '../field-errors.ts';
import { decodeCursor, encodeCursor, type PagePosition } from '../page-cursor.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { type TimeslotRecord, withAppointments } from './timeslot.ts';

export interface TimeslotsQuery {
  crmId: string;
  providerReference: string;
  resourceReference: string;
  /** Date-times as in the interface. */
  from: string;
  to: string;
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface TimeslotsFilter {
  crmId: string;
  providerId: string;
  resourceReference: string;
  from: Date;
  to: Date;
}

/**
 * The timeslots of a resource that overlap a period, by start (interface 4.1), all at once: for a gateway of the previous version, which does not ask
 * for parts. Rejects with `timeslot.invalid` or `provider.not_found`.
 */
export async function listTimeslots(
  dependencies: CalendarDependencies,
  query: TimeslotsQuery,
): Promise<{ timeslots: TimeslotRecord[]; nextCursor: string | undefined }> {
  const provider = await requireProvider(dependencies, query);
  const { filter, after } = readQuery(query, provider.id, provider.timeZone);
  const db = dependencies.database.kysely;
  const found = await selectTimeslotsPart(db, filter, after, query.limit === undefined ? undefined : query.limit + 1).execute();
  const rows = found.slice(0, query.limit);
  const last = rows.at(-1);
  return {
    timeslots: await withAppointments(db, query.crmId, rows, dependencies.archiveAfterDays),
    nextCursor: found.length > rows.length && last ? encodeCursor({ startsAt: last.startsAt, id: last.id }) : undefined,
  };
}

export function selectTimeslotsPart(
  db: Kysely<CalendarSchema>,
  filter: TimeslotsFilter,
  after: PagePosition | undefined,
  limit: number | undefined,
) {
  let query = db
    .selectFrom('timeslot')
    .selectAll()
    .where('crmId', '=', filter.crmId)
    .where('providerId', '=', filter.providerId)
    .where('resourceReference', '=', filter.resourceReference)
    .where('startsAt', '<', filter.to)
    .where('endsAt', '>', filter.from)
    .orderBy('startsAt')
    .orderBy('id');
  if (after !== undefined) query = query.where(sql<boolean>`(starts_at, id) > (${after.startsAt}::timestamptz, ${after.id}::uuid)`);
  return limit === undefined ? query : query.limit(limit);
}

export function readQuery(query: TimeslotsQuery, providerId: string, timeZone: string): { filter: TimeslotsFilter; after: PagePosition | undefined } {
  const errors = collectFieldErrors();
  const from = parseDateTime(query.from, timeZone);
  const to = parseDateTime(query.to, timeZone);
  if (to <= from) errors.add('/to', 'must be after from');
  const after = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
  if (query.cursor !== undefined && after === undefined) errors.add('/cursor', 'is not a valid cursor');
  errors.throwIfAny('timeslot.invalid');
  return { filter: { crmId: query.crmId, providerId, resourceReference: query.resourceReference, from, to }, after };
}
