import type { CalendarDependencies } from '../dependencies.ts';
import { findFirstStart, type InstantPeriod, type ResourceTime } from '../slot/resource-times.ts';
import { dateAt, endAhead, endOfWeek, laterOf, readWeek, startOf, type Week } from '../slot/weeks.ts';
import {
  type BookingPage,
  type OfferChoice,
  type PageOffer,
  type PageVisit,
  openBookingPage,
  requireOffer,
  targetsOf,
} from './booking-page.ts';
import { type ChoiceRow, findHold, isHoldOf } from './page-choice.ts';
import { byPreference, firstAtEachStart, readPlaces } from './page-places.ts';

/** A time at which an offer can be booked. */
export interface PageTime {
  start: Date;
  end: Date;
  resourceReference: string;
}

export interface PageWeek extends Week<PageTime> {
  page: BookingPage;
  /** Of a week without a time: when the first one after it begins. */
  next: Date | undefined;
}

interface Query extends OfferChoice, PageVisit {
  /** An earlier choice, whose place counts as free if it is held. */
  choice?: string | undefined;
}

/**
 * The times of a week at which an offer can be booked, one of each start; see {@link readWeek}. Each of them can be
 * chosen. Rejects as {@link openBookingPage}, with `booking_page.offer_not_found`, or `slot.invalid` for a date that is
 * none.
 */
export async function listPageTimes(
  dependencies: CalendarDependencies,
  { date, ...query }: Query & { date?: string | undefined },
): Promise<PageWeek> {
  const { page, offer, hold } = await readQuery(dependencies, query);
  const { timeZone } = page;
  const targets = targetsOf(page, offer, hold?.emptiedAppointmentId ?? undefined);
  const week = await readWeek({
    timeZone,
    now: Temporal.Instant.fromEpochMilliseconds(page.now.getTime()),
    date,
    findFirstStart: (period) => findFirstStart(dependencies, targets, period),
    readTimes: (period) => readTimes(dependencies, page, offer, hold, period),
  });
  const { monday, times } = week;
  if (monday === undefined || times.length > 0) return { page, ...week, next: undefined };
  const from = endOfWeek(monday, timeZone);
  const next = await findFirstStart(dependencies, targets, { from, to: endAhead(from, timeZone) });
  return { page, ...week, next: next === undefined ? undefined : new Date(next) };
}

/** How many times are nearest. */
const maxNearest = 6;
/** On how many days before and after a start they are looked for, as long as there are not enough. */
const nearDays = [3, 14, 45] as const;

/**
 * The times that are nearest to a start, by start: of the weeks around it or, if there are none, from now on. Rejects
 * with `booking_page.not_found` or `booking_page.offer_not_found`.
 */
export async function listNearestPageTimes(
  dependencies: CalendarDependencies,
  { start, ...query }: Query & { start: Date },
): Promise<{ page: BookingPage; times: PageTime[] }> {
  const { page, offer, hold } = await readQuery(dependencies, query);
  const now = Temporal.Instant.fromEpochMilliseconds(page.now.getTime());
  const [wanted, { timeZone }] = [start.getTime(), page];
  const date = dateAt(Math.max(now.epochMilliseconds, wanted), timeZone);
  const around = nearDays.map((days) => ({
    from: laterOf(now, startOf(date.subtract({ days }), timeZone)),
    to: startOf(date.add({ days: days + 1 }), timeZone),
  }));
  let times: PageTime[] = [];
  for (const period of around) {
    times = await readTimes(dependencies, page, offer, hold, period);
    if (times.length >= maxNearest) break;
  }
  if (times.length === 0)
    times = await readTimes(dependencies, page, offer, hold, { from: now, to: endAhead(now, timeZone) });
  const distanceOf = (time: PageTime): number => Math.abs(time.start.getTime() - wanted);
  const nearest = times.toSorted((a, b) => distanceOf(a) - distanceOf(b)).slice(0, maxNearest);
  return { page, times: nearest.toSorted((a, b) => a.start.getTime() - b.start.getTime()) };
}

async function readQuery(
  dependencies: CalendarDependencies,
  { providerId, invitation, choice, ...chosen }: Query,
): Promise<{ page: BookingPage; offer: PageOffer; hold: ChoiceRow | undefined }> {
  const page = await openBookingPage(dependencies, { providerId, invitation });
  const offer = requireOffer(page, chosen);
  return { page, offer, hold: await findHold(dependencies, page, choice) };
}

/** Of days that are read from their beginning, or from now on. */
async function readTimes(
  dependencies: CalendarDependencies,
  page: BookingPage,
  offer: PageOffer,
  hold: ChoiceRow | undefined,
  period: InstantPeriod,
): Promise<PageTime[]> {
  const places = await readPlaces(dependencies, page, offer, period, hold?.emptiedAppointmentId ?? undefined);
  const times = firstAtEachStart(byPreference(places, page)).map(toPageTime);
  if (hold === undefined || !isHoldOf(hold, offer, {})) return times;
  // The seat that is held may be the last one of an open appointment.
  const held = { ...toPeriod(hold), resourceReference: hold.resourceReference };
  const startsAt = held.start.getTime();
  const isInPeriod = startsAt >= period.from.epochMilliseconds && startsAt < period.to.epochMilliseconds;
  if (!isInPeriod || times.some(({ start }) => start.getTime() === startsAt)) return times;
  return [...times, held].toSorted((a, b) => a.start.getTime() - b.start.getTime());
}

function toPeriod({ startsAt, endsAt }: ChoiceRow): { start: Date; end: Date } {
  return { start: new Date(startsAt), end: new Date(endsAt) };
}

function toPageTime({ startsAt, endsAt, resourceReference }: ResourceTime): PageTime {
  return { start: new Date(startsAt), end: new Date(endsAt), resourceReference };
}
