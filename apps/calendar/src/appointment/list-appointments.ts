import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { readFunction } from '@scheduling/postgres';
import { readCursor } from '@scheduling/runtime';
import type { Kysely } from 'kysely';
import { parseDateTime } from '../date-time.ts';
import type { AppointmentState, CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type ListPart, splitForMessages } from '../list-part.ts';
import { pageCursor, type PagePosition } from '../page-cursor.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type ProviderChanged, readWithRememberedProvider } from '../provider/remembered-providers.ts';

export interface AppointmentsQuery {
  crmId: string;
  providerReference: string;
  productReference?: string | undefined;
  resourceReference?: string | undefined;
  state?: AppointmentState | undefined;
  /** Only those that have all of these pairs. */
  metadata?: Record<string, string> | undefined;
  includeArchived: boolean;
  /** Date-times as in the interface: those that end after `from` and start before `to`. */
  from?: string | undefined;
  to?: string | undefined;
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

interface AppointmentsFilter {
  crmId: string;
  providerId: string;
  productReference?: string | undefined;
  resourceReference?: string | undefined;
  state?: AppointmentState | undefined;
  metadata?: Record<string, string> | undefined;
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
 * A provider's appointments by start and id, active and cancelled, in parts of bounded size, each read once the
 * previous one has been consumed: memory and work are bounded by the reader. Each part has its own snapshot. Rejects
 * with `appointment.invalid` or `provider.not_found`.
 */
export async function* listAppointments(
  dependencies: CalendarDependencies,
  query: AppointmentsQuery,
  signal: AbortSignal,
): AsyncGenerator<ListPart> {
  const db = dependencies.database.kysely;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let size = Math.min(firstAppointments, left);
  const first = await readWithRememberedProvider(dependencies, query, async (provider) => {
    const { filter, start } = readQuery(query, provider, dependencies.archiveAfterDays);
    const rows = await readAppointments(db, { ...filter, providerVersion: provider.version, after: start, size });
    return rows === 'provider_changed' ? rows : { filter, rows };
  });
  let { rows } = first;
  while (!signal.aborted) {
    const appointments = rows.flatMap(({ appointment }) => appointment ?? []);
    left -= appointments.length;
    const more = rows.length > appointments.length;
    const after = rows[appointments.length - 1];
    yield* splitForMessages(
      appointments,
      more && left === 0 && after !== undefined ? pageCursor.encode(after) : undefined,
    );
    if (!more || left === 0) return;
    // The next ones probably have about as many participations.
    size = Math.min(maxAppointments, 2 * appointments.length, left);
    const next = await readAppointments(db, { ...first.filter, after, size });
    if (next === 'provider_changed') throw new DomainError('provider.not_found');
    rows = next;
  }
}

/** See read-appointments.sql. */
interface PartRequest extends AppointmentsFilter {
  providerVersion?: number | undefined;
  after?: PagePosition | undefined;
  size: number;
}

interface AppointmentTextRow extends PagePosition {
  /** Null if it is only known to follow. */
  appointment: string | null;
}

/** One part, by start and id, after a position: at most `size` appointments, at least one if there is any. */
async function readAppointments(
  db: Kysely<CalendarSchema>,
  part: PartRequest,
): Promise<AppointmentTextRow[] | ProviderChanged> {
  const request = { ...part, participations: maxParticipations };
  const rows = await readFunction<AppointmentTextRow | { id: null }>(db, { name: 'read_appointments', request });
  return rows.length === 0 ? 'provider_changed' : rows.filter((row) => row.id !== null);
}

function readQuery(
  query: AppointmentsQuery,
  { id: providerId, timeZone }: ProviderRow,
  archiveAfterDays: number,
): { filter: AppointmentsFilter; start: PagePosition | undefined } {
  const errors = collectFieldErrors();
  const from = query.from === undefined ? undefined : parseDateTime(query.from, timeZone);
  const to = query.to === undefined ? undefined : parseDateTime(query.to, timeZone);
  if (from !== undefined && to !== undefined && to <= from) errors.add('/to', 'must be after from');
  const start = readCursor(pageCursor, query.cursor, errors);
  errors.throwIfAny('appointment.invalid');
  const { crmId, productReference, resourceReference, state, metadata, includeArchived } = query;
  return {
    filter: {
      crmId,
      providerId,
      productReference,
      resourceReference,
      state,
      metadata,
      from,
      to,
      archiveAfterDays,
      includeArchived,
    },
    start,
  };
}
