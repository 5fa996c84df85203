import TinyQueue from 'tinyqueue';
import type { Slot } from './slot.ts';

/** See read-slots.sql. Times are in epoch milliseconds. */
export interface Calendar {
  /** Slots begin in this period; the end does not belong to it. */
  from: number;
  to: number;
  /** By start. */
  timeslots: OpenTimeslot[];
  /** By start. */
  appointments: OpenAppointment[];
  /** By {@link OpenTimeslot.occupiedKey}: the periods that no place may overlap, in order, without overlaps. */
  occupied: Map<string, Period[]>;
}

/** A bookable timeslot. */
export interface OpenTimeslot {
  id: string;
  reference: string;
  resourceReference: string;
  startsAt: number;
  endsAt: number;
  /** In minutes. */
  raster: number;
  /** Of its free places; see {@link Slot}. */
  details: string;
  /** When its places are occupied; see {@link Calendar.occupied}. Timeslots that share it are of one resource. */
  occupiedKey: string;
}

/** One that is publicly bookable and has a free seat. */
export interface OpenAppointment {
  id: string;
  resourceReference: string;
  startsAt: number;
  endsAt: number;
  /** See {@link Slot}. */
  details: string;
  /** Then it is offered by the timeslots in which it lies. */
  isMadeByBooking: boolean;
}

export type Period = [startsAt: number, endsAt: number];

/** Slots are ordered by these three. */
export interface SlotPosition {
  startsAt: number;
  /** After every id, if the slot belongs to no timeslot. */
  timeslotId: string;
  /** Before every id, if the place is free. */
  appointmentId: string;
}

export interface CutSlot {
  position: SlotPosition;
  slot: Slot;
}

/** After every id. */
export const noTimeslot = '~';
/** Before every id. */
export const noAppointment = '';

/**
 * The slots of a calendar after a position, in order: free places, which are steps of the raster of a timeslot that
 * nothing overlaps, and open appointments, which no other appointment closes. An open appointment that is exactly a
 * step is named with each timeslot that it is a step of. Each slot is made when it is asked for; the work before the
 * first one does not depend on how many there are, only on how many timeslots, appointments and occupied periods.
 *
 * @param minutes how long a free place is; undefined: one raster of its timeslot. Timeslots whose raster does not
 *   divide it have none
 */
export function* cutSlots(
  calendar: Calendar,
  minutes: number | undefined,
  after: SlotPosition,
): Generator<CutSlot, undefined> {
  const sources = [freePlaces(calendar, minutes), openAppointments(calendar, minutes, after)];
  const ahead = sources.map((source) => ({ source, next: source.next() }));
  for (;;) {
    const [first] = ahead
      .filter(({ next }) => !next.done)
      .toSorted((a, b) => comparePositions(a.next.value!.position, b.next.value!.position));
    if (first === undefined) return undefined;
    if (comparePositions(first.next.value!.position, after) > 0) yield first.next.value!;
    first.next = first.source.next();
  }
}

export function comparePositions(a: SlotPosition, b: SlotPosition): number {
  return (
    a.startsAt - b.startsAt ||
    compareTexts(a.timeslotId, b.timeslotId) ||
    compareTexts(a.appointmentId, b.appointmentId)
  );
}

function compareTexts(a: string, b: string): number {
  return Number(a > b) - Number(a < b);
}

const minuteMs = 60_000;

/** Of a slot of this timeslot, in milliseconds; undefined if it has none. */
function lengthOf({ raster }: OpenTimeslot, minutes = raster): number | undefined {
  return minutes % raster === 0 ? minutes * minuteMs : undefined;
}

/** The steps of a timeslot, of which the first free one is known. */
interface Steps {
  timeslot: OpenTimeslot;
  lengthMs: number;
  /** When its resource is occupied, or free for less than any place needs. */
  periods: Period[];
  /** The first of the periods that ends after the step begins. */
  obstacle: number;
  /** Of the step. */
  startsAt: number;
}

function* freePlaces(
  { timeslots, from, to, occupied }: Calendar,
  minutes: number | undefined,
): Generator<CutSlot, undefined> {
  const bookable = timeslots.flatMap((timeslot) => {
    const lengthMs = lengthOf(timeslot, minutes);
    return lengthMs === undefined ? [] : [{ timeslot, lengthMs }];
  });
  const first = Map.groupBy(bookable, ({ timeslot }) => timeslot.occupiedKey)
    .entries()
    .flatMap(([key, sharing]) => {
      const shortestMs = sharing.reduce(
        (shortest, { lengthMs }) => Math.min(shortest, lengthMs),
        Number.POSITIVE_INFINITY,
      );
      const periods = closeGaps(occupied.get(key) ?? [], shortestMs);
      return sharing.map(({ timeslot, lengthMs }): Steps => {
        const startsAt = stepFrom(timeslot, from);
        return { timeslot, lengthMs, periods, obstacle: firstEndingAfter(periods, startsAt), startsAt };
      });
    })
    .filter((steps) => skipObstacles(steps, to))
    .toArray();
  const ahead = new TinyQueue(first, (a, b) => a.startsAt - b.startsAt || compareTexts(a.timeslot.id, b.timeslot.id));
  for (let steps = ahead.pop(); steps !== undefined; steps = ahead.pop()) {
    yield freePlace(steps);
    steps.startsAt += steps.timeslot.raster * minuteMs;
    if (skipObstacles(steps, to)) ahead.push(steps);
  }
  return undefined;
}

/** Periods in order, without the gaps between them that are shorter than this. */
function closeGaps(periods: Period[], lengthMs: number): Period[] {
  const closed: Period[] = [];
  for (const [startsAt, endsAt] of periods) {
    const last = closed.at(-1);
    if (last !== undefined && startsAt - last[1] < lengthMs) last[1] = endsAt;
    else closed.push([startsAt, endsAt]);
  }
  return closed;
}

/** Goes on to the first free step; false if there is none that begins before `to`. */
function skipObstacles(steps: Steps, to: number): boolean {
  const { timeslot, lengthMs, periods } = steps;
  while (steps.startsAt < to && steps.startsAt + lengthMs <= timeslot.endsAt) {
    while (steps.obstacle < periods.length && periods[steps.obstacle]![1] <= steps.startsAt) steps.obstacle += 1;
    const obstacle = periods[steps.obstacle];
    if (obstacle === undefined || obstacle[0] >= steps.startsAt + lengthMs) return true;
    steps.startsAt = stepFrom(timeslot, obstacle[1]);
  }
  return false;
}

function stepFrom({ startsAt, raster }: OpenTimeslot, time: number): number {
  const rasterMs = raster * minuteMs;
  return startsAt + Math.max(0, Math.ceil((time - startsAt) / rasterMs)) * rasterMs;
}

function freePlace({ timeslot, lengthMs, startsAt }: Steps): CutSlot {
  const { id, reference, details } = timeslot;
  return {
    position: { startsAt, timeslotId: id, appointmentId: noAppointment },
    slot: { startsAt, endsAt: startsAt + lengthMs, timeslotReference: reference, details },
  };
}

/** Its index, by binary search. */
function firstEndingAfter(periods: Period[], time: number): number {
  let [low, high] = [0, periods.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (periods[middle]![1] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

function* openAppointments(
  calendar: Calendar,
  minutes: number | undefined,
  after: SlotPosition,
): Generator<CutSlot, undefined> {
  const byResource = Map.groupBy(calendar.timeslots, ({ resourceReference }) => resourceReference);
  for (const beginning of Map.groupBy(offered(calendar), ({ startsAt }) => startsAt).values())
    yield* beginningTogether(beginning, byResource, minutes, after);
  return undefined;
}

/**
 * The appointments without those that a booking made and that lie in no timeslot any more, for example because it was
 * hidden.
 */
function offered({ timeslots, appointments }: Calendar): OpenAppointment[] {
  /** By resource: the latest end of the timeslots that have begun. */
  const latestEnds = new Map<string, number>();
  let begun = 0;
  return appointments.filter(({ resourceReference, startsAt, endsAt, isMadeByBooking }) => {
    for (; begun < timeslots.length && timeslots[begun]!.startsAt <= startsAt; begun += 1) {
      const timeslot = timeslots[begun]!;
      latestEnds.set(
        timeslot.resourceReference,
        Math.max(timeslot.endsAt, latestEnds.get(timeslot.resourceReference) ?? 0),
      );
    }
    return !isMadeByBooking || endsAt <= (latestEnds.get(resourceReference) ?? 0);
  });
}

/**
 * Of appointments that begin at the same moment, in the order of their ids: first with the timeslots that they are
 * steps of, then those that are none.
 */
function* beginningTogether(
  appointments: OpenAppointment[],
  byResource: Map<string, OpenTimeslot[]>,
  minutes: number | undefined,
  after: SlotPosition,
): Generator<CutSlot, undefined> {
  const { startsAt } = appointments[0]!;
  const named: { timeslot: OpenTimeslot; matching: OpenAppointment[] }[] = [];
  const others: OpenAppointment[] = [];
  for (const [resource, ofResource] of Map.groupBy(appointments, ({ resourceReference }) => resourceReference)) {
    const byEnd = Map.groupBy(ofResource, ({ endsAt }) => endsAt);
    const unnamed = new Set(byEnd.values());
    for (const timeslot of byResource.get(resource) ?? []) {
      const matching = byEnd.get(endOfStep(timeslot, startsAt, minutes));
      if (matching === undefined) continue;
      named.push({ timeslot, matching });
      unnamed.delete(matching);
    }
    others.push(...[...unnamed].flat());
  }
  const isAhead = ({ timeslot: { id } }: { timeslot: OpenTimeslot }): boolean =>
    startsAt > after.startsAt || id >= after.timeslotId;
  for (const { timeslot, matching } of named
    .filter(isAhead)
    .toSorted((a, b) => compareTexts(a.timeslot.id, b.timeslot.id))) {
    for (const appointment of matching) yield openAppointment(appointment, timeslot.id, timeslot.reference);
  }
  for (const appointment of others.toSorted((a, b) => compareTexts(a.id, b.id)))
    yield openAppointment(appointment, noTimeslot, null);
  return undefined;
}

/** NaN if no step that can be booked begins then. */
function endOfStep(timeslot: OpenTimeslot, startsAt: number, minutes: number | undefined): number {
  const isOnRaster =
    startsAt >= timeslot.startsAt && (startsAt - timeslot.startsAt) % (timeslot.raster * minuteMs) === 0;
  const endsAt = startsAt + (lengthOf(timeslot, minutes) ?? Number.NaN);
  return isOnRaster && endsAt <= timeslot.endsAt ? endsAt : Number.NaN;
}

function openAppointment(appointment: OpenAppointment, timeslotId: string, timeslotReference: string | null): CutSlot {
  const { id, startsAt, endsAt, details } = appointment;
  return {
    position: { startsAt, timeslotId, appointmentId: id },
    slot: { startsAt, endsAt, timeslotReference, details },
  };
}
