import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { readFunction } from '@scheduling/postgres';
import { readCursor } from '@scheduling/runtime';
import type { Kysely } from 'kysely';
import { addDays, parseDateTime } from '../date-time.ts';
import { timeOf } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { ListPart } from '../list-part.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type ProviderChanged, readWithRememberedProvider } from '../provider/remembered-providers.ts';
import {
  type Calendar,
  comparePositions,
  type CutSlot,
  cutSlots,
  type OpenAppointment,
  type OpenTimeslot,
  type Period,
  type SlotPosition,
} from './cut-slots.ts';
import { writeSlot } from './slot.ts';
import { slotCursor } from './slot-cursor.ts';

export interface SlotsQuery {
  crmId: string;
  providerReference: string;
  /** Date-times as in the interface: slots that begin in this period. Absent: now, and the same time 14 dates later. */
  from?: string | undefined;
  to?: string | undefined;
  resourceReference?: string | undefined;
  /** Only open appointments of this product; any place that is free. */
  productReference?: string | undefined;
  /** In minutes; absent: one raster of the timeslot. */
  duration?: number | undefined;
  /** Whether to disregard the provider's minimum notice. */
  ignoreNotice: boolean;
  /** An appointment that takes no place, because a booking that is to be moved is all that there is in it. */
  leaving?: string | undefined;
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const defaultDays = 14;
const maxDays = 92;
/** The most slots in a part: about as many as fit into one message. */
const partSize = 750;
/** How far ahead the first part looks. */
const firstSpanMs = 7 * dayMs;
/** How many timeslots, and how many appointments, are read for a part, unless more are needed for a single moment. */
const partRows = 2_000;
/** Less for the first part of a short page: so many, or a few for each slot. */
const fewRows = { least: 100, perSlot: 4 };
/**
 * So many, if the part is empty for want of rows. More at one moment are too many for a list: the work for a part is
 * bounded.
 */
const maxRows = 4_000;

/**
 * The slots of a provider, by start (interface 10.1), in parts of bounded size, each read once the previous one has
 * been consumed: memory and work are bounded by the reader. Each part is exact as of one moment. Rejects with
 * `slot.invalid` or `provider.not_found`.
 */
export async function* listSlots(
  dependencies: CalendarDependencies,
  query: SlotsQuery,
  signal: AbortSignal,
): AsyncGenerator<ListPart> {
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  // A page with as many slots as it may have, until it is known whether another one follows.
  let page: CutSlot[] | undefined;
  const partOf = (listed: CutSlot[], hasNext = false): ListPart => {
    dependencies.slots.listed(query.crmId, listed.length);
    return {
      elements: listed.map(({ slot }) => writeSlot(slot)),
      nextCursor: hasNext ? slotCursor.encode(listed.at(-1)!.position) : undefined,
    };
  };
  for await (const cuts of readSlots(dependencies, query)) {
    if (signal.aborted) return;
    if (page !== undefined) {
      if (cuts.length === 0) continue;
      return yield partOf(page, true);
    }
    const listed = cuts.slice(0, left);
    left -= listed.length;
    if (left > 0) yield partOf(listed);
    else if (cuts.length > listed.length) return yield partOf(listed, true);
    else page = listed;
  }
  if (page !== undefined) yield partOf(page);
}

/**
 * Slots in order, with a reading of the calendar for each part, which may be empty. Of a page with a limit one more is
 * read. Rejects as {@link listSlots} does.
 */
export async function* readSlots(
  dependencies: CalendarDependencies,
  query: SlotsQuery,
): AsyncGenerator<CutSlot[], undefined> {
  const db = dependencies.database.kysely;
  const size = Math.min(partSize, (query.limit ?? partSize) + 1);
  let spanMs = firstSpanMs;
  const start = await readWithRememberedProvider(dependencies, query, async (provider) => {
    const { filter, after } = readQuery(
      query,
      provider,
      query.from === undefined ? await readNow(db, query.crmId) : undefined,
    );
    const rows = Math.min(partRows, Math.max(fewRows.least, fewRows.perSlot * size));
    const read = await readCalendar(db, { ...filter, providerVersion: provider.version }, after, { spanMs, rows });
    return read === 'provider_changed' ? read : { filter, after, read };
  });
  let { after, read } = start;
  for (;;) {
    const cuts = cutSlots(read.calendar, start.filter.minutes, after).take(size).toArray();
    yield cuts;
    const isFull = cuts.length === size;
    if (!isFull && read.isComplete) return undefined;
    const { from, to } = read.calendar;
    after = isFull ? cuts.at(-1)!.position : beforeAllAt(Math.max(from, to));
    // If the slots were many, the next ones probably are, too.
    if (to > from) spanMs = Math.max(isFull ? after.startsAt - from : 2 * (to - from), minuteMs);
    const next = await readCalendar(db, start.filter, after, { spanMs, rows: partRows });
    if (next === 'provider_changed') throw new DomainError('provider.not_found');
    read = next;
  }
}

function beforeAllAt(startsAt: number): SlotPosition {
  return { startsAt, timeslotId: '', appointmentId: '' };
}

interface SlotsFilter {
  crmId: string;
  providerId: string;
  /** Absent: any. */
  providerVersion?: number | undefined;
  resourceReference?: string | undefined;
  productReference?: string | undefined;
  minutes?: number | undefined;
  ignoreNotice: boolean;
  leaving?: string | undefined;
  /** The end of the period, in epoch milliseconds. */
  end: number;
}

async function readNow(db: Kysely<CalendarSchema>, crmId: string): Promise<Date> {
  const { now } = await db.selectNoFrom(timeOf(crmId).as('now')).executeTakeFirstOrThrow();
  return now;
}

/** @param now set if the query says no begin */
function readQuery(
  query: SlotsQuery,
  { id: providerId, timeZone }: ProviderRow,
  now?: Date,
): { filter: SlotsFilter; after: SlotPosition } {
  const errors = collectFieldErrors();
  const begin = now ?? parseDateTime(query.from!, timeZone);
  const from = begin.getTime();
  const end = (
    query.to === undefined ? addDays(begin, defaultDays, timeZone) : parseDateTime(query.to, timeZone)
  ).getTime();
  if (end <= from) errors.add('/to', 'must be after from');
  // For those who count in local time, and for those who count in UTC.
  if (end > Math.max(addDays(begin, maxDays, timeZone).getTime(), from + maxDays * dayMs))
    errors.add('/to', `must be at most ${maxDays} days after from`);
  const first = beforeAllAt(from);
  const given = readCursor(slotCursor, query.cursor, errors) ?? first;
  errors.throwIfAny('slot.invalid');
  // Without `from`, the period has moved on since the previous page.
  const after = comparePositions(given, first) < 0 ? first : given;
  const { crmId, resourceReference, productReference, duration: minutes, ignoreNotice, leaving } = query;
  const filter = { crmId, providerId, resourceReference, productReference, minutes, ignoreNotice, leaving, end };
  return { filter, after };
}

interface Reading {
  calendar: Calendar;
  /** Whether there is nothing after it. */
  isComplete: boolean;
}

/** The calendar from a position on, as far as the span and the rows reach, but at least for one moment. */
async function readCalendar(
  db: Kysely<CalendarSchema>,
  { end, ...filter }: SlotsFilter,
  after: SlotPosition,
  { spanMs, rows: firstRows }: { spanMs: number; rows: number },
): Promise<Reading | ProviderChanged> {
  const to = Math.min(end, after.startsAt + spanMs);
  for (let rows = firstRows; ; rows = maxRows) {
    const request = { ...filter, from: new Date(after.startsAt), to: new Date(to), rows };
    const [row] = await readFunction<CalendarRow>(db, { name: 'read_slots', request });
    if (row === undefined) return 'provider_changed';
    if (!row.isLimited) return { calendar: toCalendar(row), isComplete: to === end || row.to < to };
    if (row.to > row.from) return { calendar: toCalendar(row), isComplete: false };
    if (rows === maxRows) throw tooManyAtOnce(filter.resourceReference);
  }
}

function tooManyAtOnce(resourceReference: string | undefined): DomainError {
  const tooMany = `more than ${maxRows} timeslots are open, or appointments begin, at the same moment`;
  const detail =
    resourceReference === undefined ? `is required, because ${tooMany}` : `names a resource of which ${tooMany}`;
  return new DomainError('slot.invalid', { errors: [{ pointer: '/resourceRef', detail }] });
}

type TimeslotColumns = [string, string, string, number, number, number, string, string];
type AppointmentColumns = [string, string, number, number, string, boolean];

/** See read-slots.sql. */
interface CalendarRow {
  from: number;
  to: number;
  isLimited: boolean;
  timeslots: TimeslotColumns[] | null;
  appointments: AppointmentColumns[] | null;
  occupied: Record<string, Period[]> | null;
}

function toCalendar({ from, to, timeslots, appointments, occupied }: CalendarRow): Calendar {
  return {
    from,
    to,
    timeslots: (timeslots ?? []).map(toTimeslot),
    appointments: (appointments ?? []).map(toAppointment),
    occupied: new Map(Object.entries(occupied ?? {})),
  };
}

function toTimeslot(columns: TimeslotColumns): OpenTimeslot {
  const [id, reference, resourceReference, startsAt, endsAt, raster, details, occupiedKey] = columns;
  return { id, reference, resourceReference, startsAt, endsAt, raster, details, occupiedKey };
}

function toAppointment(columns: AppointmentColumns): OpenAppointment {
  const [id, resourceReference, startsAt, endsAt, details, isMadeByBooking] = columns;
  return { id, resourceReference, startsAt, endsAt, details, isMadeByBooking };
}
