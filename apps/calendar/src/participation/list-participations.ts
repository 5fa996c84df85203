import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { readFunction } from '@scheduling/postgres';
import { type Cursor, isUuid, readCursor } from '@scheduling/runtime';
import type { Kysely } from 'kysely';
import { fetchIfKnown, findCustomerId } from '../customer/customer-copy.ts';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema, ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type ListPart, splitForMessages } from '../list-part.ts';
import { pageCursor } from '../page-cursor.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type ProviderChanged, readWithRememberedProvider } from '../provider/remembered-providers.ts';

export interface ParticipationsQuery {
  crmId: string;
  providerReference: string;
  customerReference?: string | undefined;
  state?: ParticipationState | undefined;
  /** Date-times as in the interface: those whose appointment ends after `from` and starts before `to`. */
  from?: string | undefined;
  to?: string | undefined;
  /** A date-time as in the interface: those that were created or changed at or after it. */
  changedSince?: string | undefined;
  /** Only those that have all of these pairs. */
  metadata?: Record<string, string> | undefined;
  noShow?: boolean | undefined;
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** The most participations in a part; the first one has fewer, so that it is there sooner. */
const partSize = 500;
const firstSize = 100;
/** How many participations, and appointments without any, are read for a part, whether or not they are listed. */
const partRows = 2_000;

/**
 * A provider's participations by the start of the appointment, then by appointment, in order of creation, in parts of
 * bounded size, each read once the previous one has been consumed: memory and work are bounded by the reader. A part
 * may be empty. Each has its own snapshot. Rejects with `participation.invalid` or `provider.not_found`.
 */
export async function* listParticipations(
  dependencies: CalendarDependencies,
  query: ParticipationsQuery,
  signal: AbortSignal,
): AsyncGenerator<ListPart> {
  const db = dependencies.database.kysely;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  // One more than the page may have shows that another one follows.
  const firstRequest = { size: Math.min(firstSize, left + 1) };
  const { filter, part: first } = await readWithRememberedProvider(dependencies, query, async (provider) => {
    const start = readQuery(query, provider);
    const customer = await readCustomer(dependencies, query, provider);
    if (customer === 'unknown') return { filter: start.filter, part: { participations: [] } };
    const filter = { ...start.filter, ...customer };
    const part = await readPart(db, {
      ...filter,
      ...firstRequest,
      providerVersion: provider.version,
      after: start.after,
    });
    return part === 'provider_changed' ? part : { filter, part };
  });
  let part = first;
  let last: ListedParticipation | undefined;
  while (!signal.aborted) {
    const listed = part.participations.slice(0, left);
    left -= listed.length;
    last = listed.at(-1) ?? last;
    const hasNextPage = part.participations.length > listed.length;
    yield* splitForMessages(
      listed.map(({ participation }) => participation),
      hasNextPage && last !== undefined ? positionCursor.encode(last) : undefined,
    );
    if (hasNextPage || part.rest === undefined) return;
    const next = await readPart(db, { ...filter, size: Math.min(partSize, left + 1), after: part.rest });
    if (next === 'provider_changed') throw new DomainError('provider.not_found');
    part = next;
  }
}

/** Whom the reference in the query means, by the customer service if calendar does not know it. */
async function readCustomer(
  dependencies: CalendarDependencies,
  { crmId, providerReference, customerReference }: ParticipationsQuery,
  { id: providerId }: ProviderRow,
): Promise<Pick<ParticipationsFilter, 'customerId'> | 'unknown'> {
  if (customerReference === undefined) return {};
  const known = await findCustomerId(dependencies.database.kysely, { crmId, providerId, reference: customerReference });
  const customerId = known ?? (await fetchIfKnown(dependencies, { crmId, providerReference }, customerReference));
  return customerId === undefined ? 'unknown' : { customerId };
}

interface ParticipationsFilter {
  crmId: string;
  providerId: string;
  customerId?: string | undefined;
  state?: ParticipationState | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
  changedSince?: Date | undefined;
  metadata?: Record<string, string> | undefined;
  noShow?: boolean | undefined;
}

/** Where a part ended. */
interface Position {
  startsAt: Date;
  appointmentId: string;
  participationId: string;
}

function readQuery(
  query: ParticipationsQuery,
  { id: providerId, timeZone }: ProviderRow,
): { filter: ParticipationsFilter; after: Position | undefined } {
  const errors = collectFieldErrors();
  const read = (text: string | undefined): Date | undefined =>
    text === undefined ? undefined : parseDateTime(text, timeZone);
  const [from, to, changedSince] = [read(query.from), read(query.to), read(query.changedSince)];
  if (from !== undefined && to !== undefined && to <= from) errors.add('/to', 'must be after from');
  const after = readCursor(positionCursor, query.cursor, errors);
  errors.throwIfAny('participation.invalid');
  const { crmId, state, metadata, noShow } = query;
  return { filter: { crmId, providerId, state, from, to, changedSince, metadata, noShow }, after };
}

/** See read-participations.sql. */
interface PartRequest extends ParticipationsFilter {
  providerVersion?: number | undefined;
  after?: Position | undefined;
  size: number;
}

interface ListedParticipation extends Position {
  participation: string;
}

/** Null if there may be more after it. */
type ParticipationRow = ListedParticipation | (Position & { participation: null });

interface NoRow {
  startsAt: null;
}

interface ParticipationsPart {
  participations: ListedParticipation[];
  /** Where there may be more. */
  rest?: Position | undefined;
}

async function readPart(db: Kysely<CalendarSchema>, part: PartRequest): Promise<ParticipationsPart | ProviderChanged> {
  const request = { ...part, rows: partRows };
  const answer = await readFunction<ParticipationRow | NoRow>(db, { name: 'read_participations', request });
  if (answer.length === 0) return 'provider_changed';
  const rows = answer.filter((row) => row.startsAt !== null);
  return {
    participations: rows.filter((row) => row.participation !== null),
    rest: rows.find((row) => row.participation === null),
  };
}

/** That of the appointment, and the participation in it. */
const positionCursor: Cursor<Position> = {
  encode: ({ startsAt, appointmentId, participationId }) =>
    `${pageCursor.encode({ startsAt, id: appointmentId })}.${participationId}`,
  decode: (cursor) => {
    const [appointmentCursor = '', participationId = '', ...others] = cursor.split('.');
    const appointment = pageCursor.decode(appointmentCursor);
    if (appointment === undefined || !isUuid(participationId) || others.length > 0) return undefined;
    return { startsAt: appointment.startsAt, appointmentId: appointment.id, participationId };
  },
};
