import type { Hours, HoursWindow, Location } from '@scheduling/contracts/calendar/v1';

const minuteMs = 60_000;
const dayMinutes = 24 * 60;
const quarter = 15;
/** More than any clock on a wall is ahead of UTC. */
const maxOffset = 15 * 60;

/** What a timeslot takes over from a window of hours. Start and end are minutes since 1970. */
export interface Opening {
  start: number;
  end: number;
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  /** As a record shows it. */
  address: unknown;
  bufferBefore: number;
  bufferAfter: number;
}

/** Days are counted since 1970. */
export const dayOf = (date: string): number => Date.parse(`${date}T00:00Z`) / (dayMinutes * minuteMs);
export const dateOf = (day: number): string => new Date(day * dayMinutes * minuteMs).toISOString().slice(0, 10);

/**
 * Reads hours as a person would, who looks at a clock on the wall of which Intl knows what it shows: for each day, and
 * with nothing of what the service uses for it.
 */
export class HoursReader {
  readonly #format: Intl.DateTimeFormat;
  readonly #offsets = new Map<number, number>();

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat('en', {
      timeZone,
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
  }

  /** The day that the calendar on the wall shows at a minute. */
  dayAt(minute: number): number {
    return Math.floor((minute + this.#offsetAt(minute)) / dayMinutes);
  }

  /** What is made of the windows that begin on a day, equal ones once. */
  openingsOn(hours: Hours, day: number): Opening[] {
    const openings = windowsOn(hours, day).flatMap((window) => this.#openingOf(window, day));
    return [...new Map(openings.map((opening) => [JSON.stringify(opening), opening])).values()];
  }

  /** Whether a minute lies in any window. */
  isOpen(hours: Hours, minute: number): boolean {
    const day = this.dayAt(minute);
    // The clock on the wall may go back from one day to the day before.
    return [day - 1, day, day + 1].some((each) =>
      this.openingsOn(hours, each).some(({ start, end }) => start <= minute && minute < end),
    );
  }

  #openingOf(window: HoursWindow, day: number): Opening[] {
    const midnight = day * dayMinutes;
    const from = midnight + timeOfDay(window.from);
    const to = midnight + timeOfDay(window.to) + (timeOfDay(window.to) < timeOfDay(window.from) ? dayMinutes : 0);
    if (this.#isSkipped(from) && this.#isSkipped(to - 1)) return [];
    const { raster, defaultCapacity, defaultAcceptBookings, bufferBefore = 0, bufferAfter = 0 } = window;
    const [start, end] = [this.#minuteOf(from), this.#minuteOf(to)];
    if (end - start < raster) return [];
    const address = recordOf(window.address);
    return [{ start, end, raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore, bufferAfter }];
  }

  /** When the clock shows it for the first time. What it never shows is reckoned on from before it was changed. */
  #minuteOf(local: number): number {
    return this.#isSkipped(local) ? local - this.#offsetAt(this.#firstFrom(local) - 1) : this.#firstFrom(local);
  }

  #isSkipped(local: number): boolean {
    const first = this.#firstFrom(local);
    return first + this.#offsetAt(first) > local;
  }

  /** The first minute at which the clock shows this time or a later one. */
  #firstFrom(local: number): number {
    for (let minute = floorTo(quarter, local - maxOffset); ; minute += quarter) {
      const offset = this.#offsetAt(minute);
      if (minute + offset + quarter > local) return Math.max(minute, local - offset);
    }
  }

  /** By how much the clock is ahead of UTC. It is changed at most once a day, at a quarter of an hour. */
  #offsetAt(minute: number): number {
    const midnight = floorTo(dayMinutes, minute);
    const offset = this.#readOffset(midnight);
    return offset === this.#readOffset(midnight + dayMinutes) ? offset : this.#readOffset(floorTo(quarter, minute));
  }

  #readOffset(minute: number): number {
    const known = this.#offsets.get(minute);
    if (known !== undefined) return known;
    const shown = Object.fromEntries(
      this.#format.formatToParts(minute * minuteMs).map(({ type, value }) => [type, Number(value)]),
    ) as Record<'year' | 'month' | 'day' | 'hour' | 'minute', number>;
    const local = Date.UTC(shown.year, shown.month - 1, shown.day, shown.hour, shown.minute) / minuteMs;
    this.#offsets.set(minute, local - minute);
    return local - minute;
  }
}

function windowsOn({ weekly, exceptions, validFrom, validUntil }: Hours, day: number): HoursWindow[] {
  const date = dateOf(day);
  if ((validFrom !== undefined && date < validFrom) || (validUntil !== undefined && date > validUntil)) return [];
  const exception = exceptions.findLast(({ from, to }) => from <= date && date <= to);
  if (exception !== undefined) return exception.windows;
  // The first of January 1970 was a Thursday.
  const weekday = String(((day + 3) % 7) + 1);
  return weekly.filter(({ weekdays }) => weekdays.includes(weekday));
}

function timeOfDay(text: string): number {
  return Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
}

function floorTo(step: number, minute: number): number {
  return Math.floor(minute / step) * step;
}

/** An address as an object of the REST interface. */
export function recordOf(address: Location | undefined): unknown {
  const kind = address?.kind;
  if (kind?.$case !== 'address') return kind?.value ?? null;
  const { city = null, countryCode = null, street = null, number = null, zip = null } = kind.value;
  return { city, countryCode, street, number, zip };
}
