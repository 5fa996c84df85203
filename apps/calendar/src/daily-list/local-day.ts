import { instantOf, toDate } from '../date-time.ts';

/** A date in a time zone: from its first moment until before that of the next date. */
export function periodOf(date: Temporal.PlainDate, timeZone: string): { dayStart: Date; dayEnd: Date } {
  return { dayStart: startOf(date, timeZone), dayEnd: startOf(date.add({ days: 1 }), timeZone) };
}

/**
 * When the list of a day is due that is wanted at this hour: if the clock shows it twice, the first time; if it skips
 * it, when it goes on, or an hour before, if that is another day.
 */
export function dueTime(date: Temporal.PlainDate, hour: number, timeZone: string): Date {
  const due = toDate(instantOf(date.toPlainDateTime({ hour }), timeZone));
  const { dayEnd } = periodOf(date, timeZone);
  return due < dayEnd ? due : new Date(dayEnd.getTime() - 3_600_000);
}

function startOf(date: Temporal.PlainDate, timeZone: string): Date {
  return toDate(date.toZonedDateTime(timeZone).toInstant());
}
