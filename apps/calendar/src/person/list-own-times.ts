import type { Location } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { findFirstStart, type InstantPeriod, type ResourceTime, type Target, timesOf } from '../slot/resource-times.ts';
import { noWeek, readWeek, type Week } from '../slot/weeks.ts';
import { lengthOf, type OwnBooking, requireOwnBooking } from './own-booking.ts';
import { type OwnPlace, resourcesToMoveTo } from './own-place.ts';

/** The times of a week to which a booking can be moved. */
export interface OwnTimes extends Week<OwnTime> {
  booking: OwnBooking;
}

export interface OwnTime {
  start: Date;
  end: Date;
  place: OwnPlace;
  /** Of an open appointment; null for a free place. */
  description: string | null;
  address: Location | null;
}

const minuteMs = 60_000;

/**
 * The times of a week, Monday to Sunday in the provider's time zone, to which a booking can be moved by its person, and
 * none if it cannot; see {@link readWeek}. Rejects with `link.not_found`, or `slot.invalid` for a date that is none.
 */
export async function listOwnTimes(
  dependencies: CalendarDependencies,
  { token, date }: { token: string; date?: string | undefined },
): Promise<OwnTimes> {
  const booking = await requireOwnBooking(dependencies, token);
  if (!booking.movable) return { booking, ...noWeek };
  const targets = await targetsOf(dependencies, booking);
  const week = await readWeek({
    timeZone: booking.timeZone,
    now: Temporal.Instant.from(booking.now),
    date,
    findFirstStart: (period) => findFirstStart(dependencies, targets, period),
    readTimes: (period) => readTimes(dependencies, targets, period),
  });
  return { booking, ...week };
}

/** One for each resource. */
async function targetsOf(dependencies: CalendarDependencies, booking: OwnBooking): Promise<Target[]> {
  const { crmId, providerReference, productReference, emptiedAppointmentId } = booking;
  // A place of another length is left out afterwards.
  const duration = Math.max(1, Math.floor(lengthOf(booking) / minuteMs));
  const leaving = emptiedAppointmentId ?? undefined;
  const accepts = (time: ResourceTime): boolean => isTargetOf(booking, time);
  const common = { crmId, providerReference, productReference, duration, leaving, ignoreNotice: false, accepts };
  const resources = await resourcesToMoveTo(dependencies, booking);
  return resources.map((resourceReference) => ({ ...common, resourceReference }));
}

/** By start; of several places at the same time the one on the first resource. */
async function readTimes(
  dependencies: CalendarDependencies,
  targets: Target[],
  period: InstantPeriod,
): Promise<OwnTime[]> {
  const times = new Map<number, OwnTime>();
  for (const target of targets) {
    for await (const time of timesOf(dependencies, target, period))
      if (!times.has(time.startsAt)) times.set(time.startsAt, toOwnTime(time));
  }
  return [...times.values()].toSorted((a, b) => a.start.getTime() - b.start.getTime());
}

/** It is another time than the present one, as long and as expensive: see own_move_refusal in move-booking.sql. */
function isTargetOf(booking: OwnBooking, { startsAt, endsAt, details }: ResourceTime): boolean {
  const { appointmentReference, price } = details;
  const { priceValue, priceCurrency } = booking;
  const isAsExpensive = (price?.value ?? null) === priceValue && (price?.currency ?? null) === priceCurrency;
  return (
    startsAt !== Date.parse(booking.startsAt) &&
    endsAt - startsAt === lengthOf(booking) &&
    // A free place has the price of the booking that moves there.
    (appointmentReference === null || isAsExpensive)
  );
}

function toOwnTime({ startsAt, endsAt, timeslotReference, details }: ResourceTime): OwnTime {
  const [start, end] = [new Date(startsAt), new Date(endsAt)];
  const { appointmentReference, description, address } = details;
  const place =
    appointmentReference === null ? { timeslotReference: timeslotReference!, start } : { appointmentReference };
  return { start, end, place, description, address };
}
