import type { Location } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { readSlots, type SlotsQuery } from './list-slots.ts';
import type { Slot } from './slot.ts';

/** Slots of a resource that persons can choose from. */
export interface Target extends Omit<SlotsQuery, 'from' | 'to' | 'resourceReference'> {
  resourceReference: string;
  /** Which of them: by default all. */
  accepts?: (time: ResourceTime) => boolean;
}

/** A slot of a target. */
export interface ResourceTime {
  /** In epoch milliseconds. */
  startsAt: number;
  endsAt: number;
  resourceReference: string;
  /** Null for an open appointment that is no step of a timeslot. */
  timeslotReference: string | null;
  details: SlotDetails;
}

/** See slot-details.sql. */
export interface SlotDetails {
  /** Null for a free place. */
  appointmentReference: string | null;
  description: string | null;
  /** How many are free. */
  seats: number;
  address: Location | null;
  price: { value: number; currency: string } | null;
}

export interface InstantPeriod {
  from: Temporal.Instant;
  to: Temporal.Instant;
}

/** The times of a target that begin in a period, by start. */
export async function* timesOf(
  dependencies: CalendarDependencies,
  { accepts = () => true, ...target }: Target,
  { from, to }: InstantPeriod,
): AsyncGenerator<ResourceTime> {
  if (Temporal.Instant.compare(from, to) >= 0) return;
  for await (const part of readSlots(dependencies, { ...target, from: from.toString(), to: to.toString() })) {
    for (const { slot } of part) {
      const time = toResourceTime(slot, target.resourceReference);
      if (accepts(time)) yield time;
    }
  }
}

/** When the first time of any of the targets begins, in epoch milliseconds; undefined: there is none. */
export async function findFirstStart(
  dependencies: CalendarDependencies,
  targets: Target[],
  { from, to: end }: InstantPeriod,
): Promise<number | undefined> {
  let earliest: number | undefined;
  for (const target of targets) {
    const to = earliest === undefined ? end : Temporal.Instant.fromEpochMilliseconds(earliest);
    // Few rows are read for the first part of a short page.
    for await (const { startsAt } of timesOf(dependencies, { ...target, limit: 1 }, { from, to })) {
      earliest = startsAt;
      break;
    }
  }
  return earliest;
}

function toResourceTime(
  { startsAt, endsAt, timeslotReference, details }: Slot,
  resourceReference: string,
): ResourceTime {
  return { startsAt, endsAt, resourceReference, timeslotReference, details: JSON.parse(details) as SlotDetails };
}
