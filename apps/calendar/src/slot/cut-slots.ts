import TinyQueue from 'tinyqueue';
import type { Location } from '../db/schema.ts';
import type { Slot, SlotRecord } from './slot.ts';

/** See read-slots.sql. Times are in epoch milliseconds. */
export interface Calendar {
  /** Slots begin in this period; the end does not belong to it. */
  from: number;
  to: number;
  timeslots: OpenTimeslot[];
  appointments: OpenAppointment[];
  /** By resource: the periods in which it is occupied, in order, without overlaps. */
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
  defaultCapacity: number;
  address: Location | null;
}

/** One that is publicly bookable and has a free seat. */
export interface OpenAppointment extends Omit<SlotRecord, 'startsAt' | 'endsAt'> {
  id: string;
  startsAt: number;
  endsAt: number;
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
 * The slots of a calendar, in order: free places, which are steps of the raster of a timeslot that nothing overlaps, and open appointments, which nothing
 * closes. An open appointment that is exactly a step is named with each timeslot that it is a step of. Each slot is made when it is asked for.
 *
 * @param minutes how long a free place is; undefined: one raster of its timeslot. Timeslots whose raster does not divide it have none
 */
export function* cutSlots(calendar: Calendar, minutes: number | undefined): Generator<CutSlot, undefined> {
  const ahead = new TinyQueue<CutSlot & { rest: Iterator<CutSlot> }>([], (a, b) => comparePositions(a.position, b.position));
  const sources = calendar.timeslots.map((timeslot) => freePlaces(calendar, timeslot, lengthOf(timeslot, minutes)));
  for (const rest of [...sources, openAppointments(calendar, minutes)]) {
    const { value } = rest.next();
    if (value) ahead.push({ ...value, rest });
  }
  for (let first = ahead.pop(); first !== undefined; first = ahead.pop()) {
    const { rest, ...cut } = first;
    yield cut;
    const { value } = rest.next();
    if (value) ahead.push({ ...(value as CutSlot), rest });
  }
  return undefined;
}

export function comparePositions(a: SlotPosition, b: SlotPosition): number {
  return a.startsAt - b.startsAt || compareTexts(a.timeslotId, b.timeslotId) || compareTexts(a.appointmentId, b.appointmentId);
}

function compareTexts(a: string, b: string): number {
  return Number(a > b) - Number(a < b);
}

const minuteMs = 60_000;

/** Of a slot of this timeslot, in milliseconds; undefined if it has none. */
function lengthOf({ raster }: OpenTimeslot, minutes = raster): number | undefined {
  return minutes % raster === 0 ? minutes * minuteMs : undefined;
}

function* freePlaces({ from, to, occupied }: Calendar, timeslot: OpenTimeslot, lengthMs: number | undefined): Generator<CutSlot, undefined> {
  if (lengthMs === undefined) return undefined;
  const { id, reference, resourceReference, startsAt: opensAt, endsAt: closesAt, raster, defaultCapacity, address } = timeslot;
  const periods = occupied.get(resourceReference) ?? [];
  const stepFrom = (time: number): number => opensAt + Math.max(0, Math.ceil((time - opensAt) / (raster * minuteMs))) * raster * minuteMs;
  const place = {
    resourceReference,
    timeslotReference: reference,
    appointmentReference: null,
    productReference: null,
    description: null,
    capacity: defaultCapacity,
    seats: defaultCapacity,
    address,
    priceValue: null,
    priceCurrency: null,
  };
  let startsAt = stepFrom(from);
  while (startsAt < to && startsAt + lengthMs <= closesAt) {
    const obstacle = firstEndingAfter(periods, startsAt);
    if (obstacle !== undefined && obstacle[0] < startsAt + lengthMs) {
      startsAt = stepFrom(obstacle[1]);
      continue;
    }
    const position = { startsAt, timeslotId: id, appointmentId: noAppointment };
    yield { position, slot: { startsAt, endsAt: startsAt + lengthMs, ...place } };
    startsAt += raster * minuteMs;
  }
  return undefined;
}

/** By binary search. */
function firstEndingAfter(periods: Period[], time: number): Period | undefined {
  let [low, high] = [0, periods.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (periods[middle]![1] > time) high = middle;
    else low = middle + 1;
  }
  return periods[low];
}

function* openAppointments({ timeslots, appointments }: Calendar, minutes: number | undefined): Generator<CutSlot, undefined> {
  const byResource = Map.groupBy(timeslots, ({ resourceReference }) => resourceReference);
  const cuts = appointments.flatMap((appointment) => {
    const matching = (byResource.get(appointment.resourceReference) ?? []).filter((timeslot) => isStepOf(appointment, timeslot, minutes));
    const named = matching.map(({ id, reference }) => ({ timeslotId: id, timeslotReference: reference }));
    return (named.length > 0 ? named : [{ timeslotId: noTimeslot, timeslotReference: null }]).map(({ timeslotId, timeslotReference }): CutSlot => ({
      position: { startsAt: appointment.startsAt, timeslotId, appointmentId: appointment.id },
      slot: { ...appointment, timeslotReference },
    }));
  });
  yield* cuts.toSorted((a, b) => comparePositions(a.position, b.position));
  return undefined;
}

function isStepOf({ startsAt, endsAt }: OpenAppointment, timeslot: OpenTimeslot, minutes: number | undefined): boolean {
  return (
    startsAt >= timeslot.startsAt &&
    endsAt <= timeslot.endsAt &&
    endsAt - startsAt === lengthOf(timeslot, minutes) &&
    (startsAt - timeslot.startsAt) % (timeslot.raster * minuteMs) === 0
  );
}
