import { type Kysely, sql } from 'kysely';
import { archivedUntil } from '../db/clock.ts';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { collectFieldErrors } from '../field-errors.ts';
import { maxCharacters } from '../message-length.ts';
import { decodeCursor, encodeCursor, type PagePosition } from '../page-cursor.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { appointmentJson } from './appointment-json.ts';
import { selectAppointments } from './appointment.ts';

export interface AppointmentsQuery {
  crmId: string;
  providerReference: string;
  productReference?: string | undefined;
  resourceReference?: string | undefined;
  includeArchived: boolean;
  /** Date-times as in the interface: those that end after `from` and start before `to`. */
  from?: string | undefined;
  to?: string | undefined;
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface AppointmentsPart {
  /** Each an object of the REST interface (2.5). */
  appointments: string[];
  /** Set in the last part of a page if there is another page. */
  nextCursor?: string | undefined;
}

export interface AppointmentsFilter {
  crmId: string;
  providerId: string;
  productReference?: string | undefined;
  resourceReference?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
  archiveAfterDays: number;
  includeArchived: boolean;
}

/** The most appointments in a part; the first one has fewer, so that it is there sooner. */
const maxAppointments = 250;
const firstAppointments = 100;
/** The most participations in a part, unless a single appointment has more. */
const maxParticipations = 500;

/**
 * A provider's appointments by start and id, active and cancelled, in parts of bounded size, each read once the previous one has been consumed:
 * memory and work are bounded by the reader. Each part has its own snapshot. Rejects with `appointment.invalid` or `provider.not_found`.
 */
export async function* listAppointments(
  dependencies: CalendarDependencies,
  query: AppointmentsQuery,
  signal: AbortSignal,
): AsyncGenerator<AppointmentsPart> {
  const provider = await requireProvider(dependencies, query);
  const { filter, start } = readQuery(query, provider.id, provider.timeZone, dependencies.archiveAfterDays);
  let after = start;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let batchSize = firstAppointments;
  while (!signal.aborted) {
    const size = Math.min(batchSize, left);
    const found = await selectAppointmentsPart(dependencies.database.kysely, filter, after, size).execute();
    const appointments = found.flatMap(({ json }) => json ?? []);
    // The next ones probably have about as many participations.
    batchSize = Math.min(maxAppointments, 2 * appointments.length);
    left -= appointments.length;
    const more = found.length > appointments.length;
    after = found[appointments.length - 1];
    const nextCursor = more && left === 0 && after !== undefined ? encodeCursor(after) : undefined;
    yield* splitForMessages(appointments, nextCursor);
    if (!more || left === 0) return;
  }
}

/** Each part fits into one message, unless it is a single appointment; an empty list is one part. */
function* splitForMessages(appointments: string[], nextCursor: string | undefined): Generator<AppointmentsPart> {
  let part: string[] = [];
  let characters = 0;
  for (const appointment of appointments) {
    if (part.length > 0 && characters + appointment.length > maxCharacters) {
      yield { appointments: part };
      part = [];
      characters = 0;
    }
    part.push(appointment);
    characters += appointment.length;
  }
  yield { appointments: part, nextCursor };
}

/**
 * One part, by start and id, after a position: at most `size` rows with `json`, at least one if there is any. Rows that are only known to follow have
 * none: those whose participations would be too many, and the one after `size`.
 */
export function selectAppointmentsPart(db: Kysely<CalendarSchema>, filter: AppointmentsFilter, after: PagePosition | undefined, size: number) {
  const inOrder = sql`OVER (ORDER BY starts_at, id)`;
  return db
    .selectFrom(
      db
        .selectFrom(selectListed(db, filter, after, size + 1).as('listed'))
        .selectAll()
        .select(sql`row_number() ${inOrder}`.as('number'))
        .select(sql`sum(participation_count) ${inOrder}`.as('participations'))
        .as('appointment'),
    )
    .select(['startsAt', 'id'])
    .select(sql<string | null>`CASE WHEN number = 1 OR number <= ${size} AND participations <= ${maxParticipations} THEN ${appointmentJson} END`.as('json'))
    .orderBy('startsAt')
    .orderBy('id');
}

/** Participations are counted up to what a part can hold. */
function selectListed(db: Kysely<CalendarSchema>, filter: AppointmentsFilter, after: PagePosition | undefined, limit: number) {
  let query = selectAppointments(db, filter.archiveAfterDays)
    .select(
      sql<number>`(SELECT count(*) FROM (
        SELECT FROM participation
         WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id
         LIMIT ${maxParticipations + 1}) AS counted)`.as('participationCount'),
    )
    .where('crmId', '=', filter.crmId)
    .where('providerId', '=', filter.providerId)
    .orderBy('startsAt')
    .orderBy('id')
    .limit(limit);
  if (filter.productReference !== undefined) query = query.where('productReference', '=', filter.productReference);
  if (filter.resourceReference !== undefined) query = query.where('resourceReference', '=', filter.resourceReference);
  if (filter.from !== undefined) query = query.where('endsAt', '>', filter.from);
  if (filter.to !== undefined) query = query.where('startsAt', '<', filter.to);
  if (!filter.includeArchived) query = query.where('endsAt', '>', archivedUntil(filter.archiveAfterDays));
  if (after !== undefined) query = query.where(sql<boolean>`(starts_at, id) > (${after.startsAt}::timestamptz, ${after.id}::uuid)`);
  return query;
}

function readQuery(
  query: AppointmentsQuery,
  providerId: string,
  timeZone: string,
  archiveAfterDays: number,
): { filter: AppointmentsFilter; start: PagePosition | undefined } {
  const errors = collectFieldErrors();
  const from = query.from === undefined ? undefined : parseDateTime(query.from, timeZone);
  const to = query.to === undefined ? undefined : parseDateTime(query.to, timeZone);
  if (from !== undefined && to !== undefined && to <= from) errors.add('/to', 'must be after from');
  const start = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
  if (query.cursor !== undefined && start === undefined) errors.add('/cursor', 'is not a valid cursor');
  errors.throwIfAny('appointment.invalid');
  const { crmId, productReference, resourceReference, includeArchived } = query;
  return { filter: { crmId, providerId, productReference, resourceReference, from, to, archiveAfterDays, includeArchived }, start };
}
