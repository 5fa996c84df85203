import { DomainError } from '@scheduling/errors';
import { readFunction } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import { maxCharacters } from '../message-length.ts';
import type { ProviderChanged } from '../provider/remembered-providers.ts';
import { type Continuation, encodeContinuation, maxRows } from './continuation.ts';
import type { TimeslotRecord } from './timeslot.ts';

export interface Part {
  timeslots: TimeslotRecord[];
  /** Whether the first timeslot is the one with which the previous part ended. */
  continued: boolean;
  /** Where the next part begins; absent in the last. */
  rest?: Continuation | undefined;
}

/** Whose timeslots are read, and of a list also which. */
export interface PartScope {
  crmId: string;
  providerId: string;
  /** Absent: any. */
  providerVersion?: number | undefined;
  archiveAfterDays: number;
  resourceReference?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/**
 * As many of the timeslots with their appointments as fit into one message, at least one timeslot or appointment: see
 * read-timeslots.sql, which bounds the rows. Memory and work do not depend on what is stored.
 */
export async function readPart(
  db: Kysely<CalendarSchema>,
  scope: PartScope,
  start: Continuation,
): Promise<Part | ProviderChanged> {
  const rows = await readFunction<PairRow | NoRow>(db, { name: 'read_timeslots', request: { ...scope, ...start } });
  if (rows.length === 0) return 'provider_changed';
  const pairs = rows.filter((row) => row.timeslotId !== null);
  const taken = pairs.slice(0, countFitting(pairs));
  const timeslots: TimeslotRecord[] = [];
  for (const { timeslot, appointment } of taken) {
    if (timeslot !== null) timeslots.push({ json: timeslot, appointments: [] });
    if (appointment !== null) timeslots.at(-1)!.appointments.push(appointment);
  }
  const previous = 'ids' in start ? start.ids[0] : start.timeslot?.id;
  const continued = start.appointment !== undefined && taken[0]?.timeslotId === previous;
  const next = pairs[taken.length];
  return { timeslots, continued, rest: next && restAfter(start, taken, next) };
}

/** The first part of an operation's answer: timeslots in the order of the ids, without those that have been deleted. */
export async function readAnswer(
  db: Kysely<CalendarSchema>,
  scope: PartScope,
  ids: string[],
): Promise<{ timeslots: TimeslotRecord[]; continuation?: string | undefined }> {
  const part = await readPart(db, scope, { ids, rows: maxRows });
  if (part === 'provider_changed') throw new DomainError('provider.not_found');
  return { timeslots: part.timeslots, continuation: part.rest && encodeContinuation(part.rest) };
}

/** See read-timeslots.sql. */
interface PairRow {
  timeslotId: string;
  timeslotStartsAt: Date;
  appointmentId: string | null;
  appointmentStartsAt: Date | null;
  rowCount: number | null;
  timeslot: string | null;
  appointment: string | null;
}

interface NoRow {
  timeslotId: null;
}

/** How many of the pairs that may be in the part fit into one message. */
function countFitting(pairs: PairRow[]): number {
  let characters = 0;
  const end = pairs.findIndex(({ rowCount, timeslot, appointment }, index) => {
    characters += (timeslot?.length ?? 0) + (appointment?.length ?? 0);
    return rowCount === null || (characters > maxCharacters && index > 0);
  });
  return end === -1 ? pairs.length : end;
}

function restAfter(start: Continuation, taken: PairRow[], next: PairRow): Continuation {
  const { timeslotId, timeslotStartsAt, appointmentId, appointmentStartsAt } = taken.at(-1)!;
  const hasMore = next.timeslotId === timeslotId;
  const appointment = hasMore ? { id: appointmentId!, startsAt: appointmentStartsAt! } : undefined;
  const rows = next.rowCount === null ? maxRows : nextRows(taken);
  if ('ids' in start)
    return { ids: start.ids.slice(start.ids.indexOf(timeslotId) + (hasMore ? 0 : 1)), appointment, rows };
  return { timeslot: { startsAt: timeslotStartsAt, id: timeslotId }, until: start.until, appointment, rows };
}

/** How many rows the next part may have: if this one's texts were long, those of the next probably are, too. */
function nextRows(taken: PairRow[]): number {
  return Math.min(maxRows, 2 * taken.reduce((sum, { rowCount }) => sum + rowCount!, 0));
}
