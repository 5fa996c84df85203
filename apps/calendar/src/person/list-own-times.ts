import { DomainError } from '@scheduling/errors';
import { instantOf } from '../date-time.ts';
import type { Location } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { readSlots, type SlotsQuery } from '../slot/list-slots.ts';
import type { Slot } from '../slot/slot.ts';
import { lengthOf, type OwnBooking, requireOwnBooking } from './own-booking.ts';
import { type OwnPlace, resourcesToMoveTo } from './own-place.ts';

/** The times of a week to which a booking can be moved. */
export interface OwnTimes {
  booking: OwnBooking;
  /** The Monday of the week, in the provider's time zone; undefined if no week has a time. */
  monday: string | undefined;
  times: OwnTime[];
  hasPrevious: boolean;
  hasNext: boolean;
}

export interface OwnTime {
  start: Date;
  end: Date;
  place: OwnPlace;
  /** Of an open appointment; null for a free place. */
  description: string | null;
  address: Location | null;
}

/** How far ahead a person is led. */
const daysAhead = 91;
const daysOfWeek = 7;
/** The last whole week of the years that people write. */
const lastMonday = Temporal.PlainDate.from('9999-12-20');
const minuteMs = 60_000;

/**
 * The times of a week, Monday to Sunday in the provider's time zone, to which a booking can be moved by its person, and
 * none if it cannot. Without a date: of the first week that has any. A date in the past is one of this week. Weeks after
 * the last one that a person is led to have their times, too: the booking can be moved there. Rejects with
 * `link.not_found`, or `slot.invalid` for a date that is none.
 */
export async function listOwnTimes(
  dependencies: CalendarDependencies,
  { token, date }: { token: string; date?: string | undefined },
): Promise<OwnTimes> {
  const booking = await requireOwnBooking(dependencies, token);
  const none = { booking, monday: undefined, times: [], hasPrevious: false, hasNext: false };
  if (!booking.movable) return none;
  const now = Temporal.Instant.from(booking.now);
  const today = now.toZonedDateTimeISO(booking.timeZone).toPlainDate();
  const [first, last] = [mondayOf(today), mondayOf(today.add({ days: daysAhead }))] as const;
  const targets = await targetsOf(dependencies, booking);
  const monday =
    date === undefined
      ? await findFirstWeek(dependencies, targets, booking, now)
      : clamp(mondayOf(parseDate(date)), first, lastMonday);
  if (monday === undefined) return none;
  const from = laterOf(now, startOf(monday, booking));
  const to = startOf(monday.add({ days: daysOfWeek }), booking);
  return {
    booking,
    monday: monday.toString(),
    times: await readTimes(dependencies, targets, booking, { from, to }),
    hasPrevious: Temporal.PlainDate.compare(monday, first) > 0,
    hasNext: Temporal.PlainDate.compare(monday, last) < 0,
  };
}

type Target = Omit<SlotsQuery, 'from' | 'to'>;

/** One query for each resource. */
async function targetsOf(dependencies: CalendarDependencies, booking: OwnBooking): Promise<Target[]> {
  const { crmId, providerReference, productReference, emptiedAppointmentId } = booking;
  // A place of another length is left out afterwards.
  const duration = Math.max(1, Math.floor(lengthOf(booking) / minuteMs));
  const leaving = emptiedAppointmentId ?? undefined;
  const common = { crmId, providerReference, productReference, duration, leaving, ignoreNotice: false };
  const resources = await resourcesToMoveTo(dependencies, booking);
  return resources.map((resourceReference) => ({ ...common, resourceReference }));
}

async function findFirstWeek(
  dependencies: CalendarDependencies,
  targets: Target[],
  booking: OwnBooking,
  now: Temporal.Instant,
): Promise<Temporal.PlainDate | undefined> {
  let earliest: number | undefined;
  const end = now.toZonedDateTimeISO(booking.timeZone).add({ days: daysAhead }).toInstant();
  for (const target of targets) {
    const to = earliest === undefined ? end : Temporal.Instant.fromEpochMilliseconds(earliest);
    if (Temporal.Instant.compare(now, to) >= 0) break;
    // Few rows are read for the first part of a short page.
    for await (const { start } of timesOf(dependencies, { ...target, limit: 1 }, booking, { from: now, to })) {
      earliest = start.getTime();
      break;
    }
  }
  return earliest === undefined
    ? undefined
    : mondayOf(Temporal.Instant.fromEpochMilliseconds(earliest).toZonedDateTimeISO(booking.timeZone).toPlainDate());
}

/** By start; of several places at the same time the one on the first resource. */
async function readTimes(
  dependencies: CalendarDependencies,
  targets: Target[],
  booking: OwnBooking,
  period: InstantPeriod,
): Promise<OwnTime[]> {
  const times = new Map<number, OwnTime>();
  for (const target of targets) {
    for await (const time of timesOf(dependencies, target, booking, period))
      if (!times.has(time.start.getTime())) times.set(time.start.getTime(), time);
  }
  return [...times.values()].toSorted((a, b) => a.start.getTime() - b.start.getTime());
}

interface InstantPeriod {
  from: Temporal.Instant;
  to: Temporal.Instant;
}

/** The places of a period to which the booking can be moved. */
async function* timesOf(
  dependencies: CalendarDependencies,
  target: Target,
  booking: OwnBooking,
  { from, to }: InstantPeriod,
): AsyncGenerator<OwnTime> {
  if (Temporal.Instant.compare(from, to) >= 0) return;
  for await (const part of readSlots(dependencies, { ...target, from: from.toString(), to: to.toString() })) {
    for (const { slot } of part) {
      const details = JSON.parse(slot.details) as SlotDetails;
      if (isTargetOf(booking, slot, details)) yield toOwnTime(slot, details);
    }
  }
}

/** See slot-details.sql. */
interface SlotDetails {
  /** Null for a free place, which has the title and the price of the booking that moves there. */
  appointmentReference: string | null;
  description: string | null;
  address: Location | null;
  price: { value: number; currency: string } | null;
}

/** It is another time than the present one, as long and as expensive: see own_move_refusal in move-booking.sql. */
function isTargetOf(booking: OwnBooking, { startsAt, endsAt }: Slot, details: SlotDetails): boolean {
  const { appointmentReference, price } = details;
  const { priceValue, priceCurrency } = booking;
  const isAsExpensive = (price?.value ?? null) === priceValue && (price?.currency ?? null) === priceCurrency;
  return (
    startsAt !== Date.parse(booking.startsAt) &&
    endsAt - startsAt === lengthOf(booking) &&
    (appointmentReference === null || isAsExpensive)
  );
}

function toOwnTime({ startsAt, endsAt, timeslotReference }: Slot, details: SlotDetails): OwnTime {
  const [start, end] = [new Date(startsAt), new Date(endsAt)];
  const { appointmentReference, description, address } = details;
  const place =
    appointmentReference === null ? { timeslotReference: timeslotReference!, start } : { appointmentReference };
  return { start, end, place, description, address };
}

function parseDate(text: string): Temporal.PlainDate {
  try {
    return Temporal.PlainDate.from(text);
  } catch {
    throw new DomainError('slot.invalid', { errors: [{ pointer: '/date', detail: 'must be a date, YYYY-MM-DD' }] });
  }
}

function mondayOf(date: Temporal.PlainDate): Temporal.PlainDate {
  return date.subtract({ days: date.dayOfWeek - 1 });
}

function startOf(date: Temporal.PlainDate, { timeZone }: OwnBooking): Temporal.Instant {
  return instantOf(date.toPlainDateTime(), timeZone);
}

function laterOf(a: Temporal.Instant, b: Temporal.Instant): Temporal.Instant {
  return Temporal.Instant.compare(a, b) > 0 ? a : b;
}

function clamp(date: Temporal.PlainDate, first: Temporal.PlainDate, last: Temporal.PlainDate): Temporal.PlainDate {
  if (Temporal.PlainDate.compare(date, first) < 0) return first;
  return Temporal.PlainDate.compare(date, last) > 0 ? last : date;
}
