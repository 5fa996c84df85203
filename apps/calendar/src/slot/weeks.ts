import { DomainError } from '@scheduling/errors';
import { instantOf } from '../date-time.ts';
import type { InstantPeriod } from './resource-times.ts';

/** A week of times, Monday to Sunday in the provider's time zone. */
export interface Week<Time> {
  /** A date; undefined if no week has a time. */
  monday: string | undefined;
  times: Time[];
  hasPrevious: boolean;
  hasNext: boolean;
}

/** A week without a time, because there is none at all. */
export const noWeek = { monday: undefined, times: [], hasPrevious: false, hasNext: false };

export interface WeekQuery<Time> {
  timeZone: string;
  /** By the CRM's clock. */
  now: Temporal.Instant;
  /** A date of the week; undefined: that of the first week that has a time. One in the past is of this week. */
  date: string | undefined;
  /** When the first time of a period begins, in epoch milliseconds. */
  findFirstStart(period: InstantPeriod): Promise<number | undefined>;
  readTimes(period: InstantPeriod): Promise<Time[]>;
}

/** How far ahead a person is led. */
const daysAhead = 91;
const daysOfWeek = 7;
/** The last whole week of the years that people write. */
const lastMonday = Temporal.PlainDate.from('9999-12-20');
const lastEnd = Temporal.Instant.from('9999-12-27T00:00Z');

/**
 * The week of a date, or the first one that has a time. Weeks after the last one that a person is led to have their
 * times, too. Rejects with `slot.invalid` for a date that is none.
 */
export async function readWeek<Time>(query: WeekQuery<Time>): Promise<Week<Time>> {
  const { timeZone, now, date, readTimes } = query;
  const today = now.toZonedDateTimeISO(timeZone).toPlainDate();
  const [first, last] = [mondayOf(today), mondayOf(today.add({ days: daysAhead }))] as const;
  const monday = date === undefined ? await findFirstWeek(query) : clamp(mondayOf(parseDate(date)), first, lastMonday);
  if (monday === undefined) return noWeek;
  const from = laterOf(now, startOf(monday, timeZone));
  return {
    monday: monday.toString(),
    times: await readTimes({ from, to: startOf(monday.add({ days: daysOfWeek }), timeZone) }),
    hasPrevious: Temporal.PlainDate.compare(monday, first) > 0,
    hasNext: Temporal.PlainDate.compare(monday, last) < 0,
  };
}

async function findFirstWeek<Time>({
  timeZone,
  now,
  findFirstStart,
}: WeekQuery<Time>): Promise<Temporal.PlainDate | undefined> {
  const start = await findFirstStart({ from: now, to: endAhead(now, timeZone) });
  if (start === undefined) return undefined;
  return mondayOf(dateAt(start, timeZone));
}

/** Up to when a person is led from a moment on. */
export function endAhead(moment: Temporal.Instant, timeZone: string): Temporal.Instant {
  const end = moment.toZonedDateTimeISO(timeZone).add({ days: daysAhead }).toInstant();
  return Temporal.Instant.compare(end, lastEnd) > 0 ? lastEnd : end;
}

/** The end of the week that begins on a Monday. */
export function endOfWeek(monday: string, timeZone: string): Temporal.Instant {
  return startOf(Temporal.PlainDate.from(monday).add({ days: daysOfWeek }), timeZone);
}

/** The date of a moment in epoch milliseconds. */
export function dateAt(moment: number, timeZone: string): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(timeZone).toPlainDate();
}

/** The first moment of a date. */
export function startOf(date: Temporal.PlainDate, timeZone: string): Temporal.Instant {
  return instantOf(date.toPlainDateTime(), timeZone);
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

export function laterOf(a: Temporal.Instant, b: Temporal.Instant): Temporal.Instant {
  return Temporal.Instant.compare(a, b) > 0 ? a : b;
}

function clamp(date: Temporal.PlainDate, first: Temporal.PlainDate, last: Temporal.PlainDate): Temporal.PlainDate {
  if (Temporal.PlainDate.compare(date, first) < 0) return first;
  return Temporal.PlainDate.compare(date, last) > 0 ? last : date;
}
