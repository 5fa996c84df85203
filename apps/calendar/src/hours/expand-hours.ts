import type { Hours, HoursWindow } from '../db/schema.ts';

/** A window on a day. */
export interface Opening {
  /** The day to which it belongs, YYYY-MM-DD: that on which it begins. */
  date: string;
  /** In epoch milliseconds. */
  startsAt: number;
  endsAt: number;
  window: HoursWindow;
}

export interface Days {
  first: Temporal.PlainDate;
  /** Inclusive. */
  last: Temporal.PlainDate;
}

/** The openings of these days, by day. */
export function* expandHours(hours: Hours, timeZone: string, { first, last }: Days): Generator<Opening> {
  for (let date = first; Temporal.PlainDate.compare(date, last) <= 0; date = date.add({ days: 1 })) {
    const day = date.toString();
    for (const window of windowsOf(hours, date, day)) {
      const opening = openingOn(date, day, window, timeZone);
      if (opening !== undefined) yield opening;
    }
  }
}

function windowsOf(
  { weekly, exceptions, validFrom, validUntil }: Hours,
  date: Temporal.PlainDate,
  day: string,
): HoursWindow[] {
  if ((validFrom !== null && day < validFrom) || (validUntil !== null && day > validUntil)) return [];
  const exception = exceptions.findLast(({ from, to }) => from <= day && day <= to);
  const weekday = String(date.dayOfWeek);
  return exception?.windows ?? weekly.filter(({ weekdays }) => weekdays.includes(weekday));
}

const minuteMs = 60_000;

/**
 * Undefined if the clock skips the whole window, or so much of it that no place is left. A start or an end that is
 * skipped takes the offset before, and one that occurs twice is the first: the rule of all local times
 * (`parseDateTime`).
 */
function openingOn(date: Temporal.PlainDate, day: string, window: HoursWindow, timeZone: string): Opening | undefined {
  const start = toMoment(date.toPlainDateTime(window.from), timeZone);
  const end = toMoment(endOf(date, window), timeZone);
  if (start.isSkipped && end.isSkipped) return undefined;
  const [startsAt, endsAt] = [start.epochMs, end.epochMs];
  return endsAt - startsAt >= window.raster * minuteMs ? { date: day, startsAt, endsAt, window } : undefined;
}

function endOf(date: Temporal.PlainDate, { from, to }: HoursWindow): Temporal.PlainDateTime {
  if (to === endOfDay) return date.add({ days: 1 }).toPlainDateTime();
  return date.add({ days: to <= from ? 1 : 0 }).toPlainDateTime(to);
}

export const endOfDay = '24:00';

function toMoment(local: Temporal.PlainDateTime, timeZone: string): { epochMs: number; isSkipped: boolean } {
  const moment = local.toZonedDateTime(timeZone, { disambiguation: 'compatible' });
  return { epochMs: moment.epochMilliseconds, isSkipped: !moment.toPlainDateTime().equals(local) };
}
