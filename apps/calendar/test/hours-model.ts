import type { Hours } from '@scheduling/contracts/calendar/v1';
import type { Random } from '@scheduling/testing/random';
import { HoursReader, type Opening } from './hours-reader.ts';
import type { RoomKey, TimeslotJson } from './hours-under-test.ts';

/** Times in this file are minutes since 1970. */
export const minuteMs = 60_000;
export const hour = 60;
export const day = 24 * hour;
/** Everything begins and ends at a multiple of this. The clock is set to a minute later, and reaches none of them meanwhile. */
export const grid = 5;
export const onGrid = (minute: number): number => Math.floor(minute / grid) * grid;
export const textOf = (minute: number): string => new Date(minute * minuteMs).toISOString();
export const minuteOf = (text: string): number => Date.parse(text) / minuteMs;

/** Where the clock is changed at night, at midnight, by half an hour, for a month, in the south, or never. */
export const zones = [
  'Europe/Berlin',
  'America/Santiago',
  'Asia/Beirut',
  'Africa/Cairo',
  'Australia/Lord_Howe',
  'America/New_York',
  'Asia/Kolkata',
  'Pacific/Apia',
  'America/St_Johns',
  'Asia/Tehran',
  'Africa/Casablanca',
  'Pacific/Chatham',
];
export const readers = new Map(zones.map((zone) => [zone, new HoursReader(zone)]));
export type Owner = Pick<RoomKey, 'crmId' | 'providerReference'>;

export interface Entry {
  opening: Opening;
  state: TimeslotJson['state'];
  fromHours: boolean;
  /** Absent until it was listed. */
  reference?: string;
  /** As hours made it, if the CRM has changed it. */
  origin?: string;
}

export interface Visit {
  reference: string;
  start: number;
  end: number;
  isActive: boolean;
  /** In minutes; 0 if the CRM made it. */
  bufferBefore: number;
  bufferAfter: number;
  /** Of one that a booking made. */
  participationReference?: string;
}

export const keyOf = (opening: Opening): string => JSON.stringify(opening);
export const liesIn = (inner: { start: number; end: number }, outer: { start: number; end: number }): boolean =>
  inner.start >= outer.start && inner.end <= outer.end;

export class Provider {
  readonly owner: Owner;
  readonly customerReference: string;
  readonly random: Random;
  readonly rooms: Room[];
  timeZone: string;

  constructor(owner: Owner, customerReference: string, timeZone: string, random: Random) {
    this.owner = owner;
    this.customerReference = customerReference;
    this.timeZone = timeZone;
    this.random = random;
    this.rooms = ['room', 'chair'].map((resourceReference) => new Room(this, resourceReference));
  }

  get reader(): HoursReader {
    return readers.get(this.timeZone)!;
  }
}

/** A resource, and what has to be there after all that has happened to it. */
export class Room {
  readonly provider: Provider;
  readonly key: RoomKey;
  hours: Hours | undefined;
  entries: Entry[] = [];
  readonly visits: Visit[] = [];
  /** What hours had made and somebody deleted since they were set. */
  readonly #deleted = new Set<string>();

  constructor(provider: Provider, resourceReference: string) {
    this.provider = provider;
    this.key = { ...provider.owner, resourceReference };
  }

  /** The timeslots that are not over. */
  present(now: number): Entry[] {
    return this.entries.filter(({ opening }) => opening.end > now);
  }

  isKept({ opening }: Entry): boolean {
    return this.visits.some((visit) => visit.isActive && liesIn(visit, opening));
  }

  /** Hours are set, removed, or read in another zone or, because the clock was set back, at an earlier time. */
  setHours(hours: Hours | undefined, now: number): void {
    this.hours = hours;
    this.#deleted.clear();
    const wanted = new Set(this.#wanted(now).map(keyOf));
    this.entries = this.entries.filter(
      (entry) => !entry.fromHours || entry.opening.end <= now || wanted.has(keyOf(entry.opening)) || this.isKept(entry),
    );
    // What the CRM has changed stands for a window only as long as the hours have it.
    for (const entry of this.entries) if (entry.origin !== undefined && !wanted.has(entry.origin)) delete entry.origin;
    for (const entry of this.present(now))
      if (entry.fromHours) entry.state = wanted.has(keyOf(entry.opening)) ? 'BOOKABLE' : 'CREATED';
    this.makeDays(now);
  }

  makeDays(now: number): void {
    for (const opening of this.#wanted(now)) {
      const key = keyOf(opening);
      const made = this.entries.find((entry) => entry.fromHours && keyOf(entry.opening) === key);
      const isClaimed = this.entries.some(({ origin }) => origin === key);
      if (made !== undefined) made.state = 'BOOKABLE';
      else if (!isClaimed && !this.#deleted.has(key))
        this.entries.push({ opening, state: 'BOOKABLE', fromHours: true });
    }
  }

  /** One of a day that has not come within reach is made when it does. */
  delete(entry: Entry, now: number): void {
    this.entries.splice(this.entries.indexOf(entry), 1);
    const key = entry.origin ?? keyOf(entry.opening);
    if (this.#wanted(now).some((opening) => keyOf(opening) === key)) this.#deleted.add(key);
  }

  /** Whether it is too near to what is there to be booked; undefined: it is exactly there. */
  isTooNear(
    { start, end }: { start: number; end: number },
    { bufferBefore, bufferAfter }: Opening,
  ): boolean | undefined {
    const active = this.visits.filter(({ isActive }) => isActive);
    if (active.some((visit) => visit.start === start && visit.end === end)) return undefined;
    return active.some(
      (visit) =>
        start < visit.end + Math.max(visit.bufferAfter, bufferBefore) &&
        visit.start < end + Math.max(bufferAfter, visit.bufferBefore),
    );
  }

  /** The references of the active appointments that do not lie in the hours from now on. */
  conflicts(now: number): string[] {
    const { hours, provider } = this;
    const minutesOf = ({ start, end }: Visit) => {
      const from = Math.max(start, onGrid(now));
      return Array.from({ length: (end - from) / grid }, (_, index) => from + index * grid);
    };
    return this.visits
      .filter(({ isActive, start, end }) => isActive && end > now && start < now + 400 * day)
      .filter(
        (visit) => hours === undefined || !minutesOf(visit).every((minute) => provider.reader.isOpen(hours, minute)),
      )
      .map(({ reference }) => reference);
  }

  /** What the hours have on the days for which timeslots are made, and on the day before if that is not over. */
  #wanted(now: number): Opening[] {
    const { hours } = this;
    if (hours === undefined) return [];
    const { reader } = this.provider;
    const today = reader.dayAt(now);
    return Array.from({ length: hours.aheadDays + 1 }, (_, index) => today - 1 + index)
      .flatMap((each) => reader.openingsOn(hours, each))
      .filter(({ end }) => end > now);
  }
}
