import { hash } from 'node:crypto';
import { periodOf } from '../daily-list/local-day.ts';
import { toInstant } from '../date-time.ts';
import type { Hours, HoursWindow, Location } from '../db/schema.ts';
import { expandHours, type Opening } from './expand-hours.ts';
import { givenBuffers } from '../timeslot/given-buffers.ts';
import { presentLocation } from './write-hours.ts';

/** A timeslot that hours have, as open-windows.sql makes it. */
export interface PlannedTimeslot {
  startsAt: Date;
  endsAt: Date;
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  address: Location | null;
  bufferBefore: number;
  bufferAfter: number;
  /** Of all of these, in hex. */
  digest: string;
}

/** Hours on the days that begin with a moment. */
export interface HoursAt {
  hours: Hours;
  timeZone: string;
  /** By the CRM's clock. */
  present: Date;
  /** How far that is ahead of the real time. */
  aheadMs: number;
}

export interface Plan {
  openings: PlannedTimeslot[];
  /** YYYY-MM-DD: the days that are made then, both inclusive. */
  madeFrom: string;
  madeUntil: string;
  /** When there is more to make, by the real time: at once, unless the plan is complete. */
  dueAt: Date;
  isComplete: boolean;
}

/** What has been made already, YYYY-MM-DD, both inclusive. */
export interface MadeDays {
  madeFrom: string;
  madeUntil: string;
}

/**
 * The timeslots of the days that are within reach and have not been made: whole days, as many as fit into a number of
 * timeslots, but at least one. What remains is due at once. A window that began on the previous day may not be over.
 *
 * @param made undefined: nothing. Days that the present one does not follow, or is not among, do not count: the service
 *   was away, or the clock of the sandbox was set
 */
export function planDays(at: HoursAt, made: MadeDays | undefined, maxTimeslots: number): Plan {
  const today = todayOf(at);
  const last = today.add({ days: at.hours.aheadDays - 1 });
  const continued = made !== undefined && continues(made, today) ? made : undefined;
  const openings: PlannedTimeslot[] = [];
  let madeUntil = continued === undefined ? today.subtract({ days: 2 }) : Temporal.PlainDate.from(continued.madeUntil);
  while (Temporal.PlainDate.compare(madeUntil, last) < 0 && openings.length < maxTimeslots) {
    madeUntil = madeUntil.add({ days: 1 });
    const days = { first: madeUntil, last: madeUntil };
    openings.push(...planTimeslots(expandHours(at.hours, at.timeZone, days), at.present));
  }
  const isComplete = Temporal.PlainDate.compare(madeUntil, last) >= 0;
  const moreAt = isComplete ? periodOf(today, at.timeZone).dayEnd : at.present;
  return {
    openings,
    madeFrom: continued?.madeFrom ?? today.toString(),
    madeUntil: madeUntil.toString(),
    dueAt: new Date(moreAt.getTime() - at.aheadMs),
    isComplete,
  };
}

/** Those that are not over, each once. */
export function planTimeslots(openings: Iterable<Opening>, present: Date): PlannedTimeslot[] {
  const planned = new Map<string, PlannedTimeslot>();
  /** What windows consist of, so that it is written once for all days. */
  const contents = new Map<HoursWindow, string>();
  for (const { startsAt, endsAt, window } of openings) {
    if (endsAt <= present.getTime()) continue;
    const content = contents.getOrInsertComputed(window, writeContent);
    const digest = hash('sha256', `${startsAt} ${endsAt} ${content}`);
    const { raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore = 0, bufferAfter = 0 } = window;
    planned.set(digest, {
      startsAt: new Date(startsAt),
      endsAt: new Date(endsAt),
      raster,
      defaultCapacity,
      defaultAcceptBookings,
      address,
      bufferBefore,
      bufferAfter,
      digest,
    });
  }
  return [...planned.values()];
}

/** What a timeslot gets from a window. The fields of an address are in one order: Postgres has another one. */
function writeContent(window: HoursWindow): string {
  const { raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore = 0, bufferAfter = 0 } = window;
  const buffers = givenBuffers(bufferBefore, bufferAfter);
  return JSON.stringify([raster, defaultCapacity, defaultAcceptBookings, presentLocation(address), ...buffers]);
}

/** By the CRM's clock, in the provider's time zone. */
export function todayOf({ present, timeZone }: Pick<HoursAt, 'present' | 'timeZone'>): Temporal.PlainDate {
  return toInstant(present).toZonedDateTimeISO(timeZone).toPlainDate();
}

function continues({ madeFrom, madeUntil }: MadeDays, today: Temporal.PlainDate): boolean {
  return (
    madeFrom <= today.toString() &&
    Temporal.PlainDate.compare(today, Temporal.PlainDate.from(madeUntil).add({ days: 1 })) <= 0
  );
}
