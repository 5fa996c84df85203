import { instantOf } from '../date-time.ts';

export interface SeriesPlan {
  timeZone: string;
  /** The first and last instant of the series; nothing is outside. */
  spanFrom: Temporal.Instant;
  spanTo: Temporal.Instant;
  /**
   * Times of day, on the wall clock, between which there are appointments. An end that is not after the start is on the
   * following day.
   */
  windowFrom: Temporal.PlainTime;
  windowTo: Temporal.PlainTime;
  /** Length of one appointment in minutes of real time. */
  raster: number;
  /** ISO weekdays, 1 (Monday) to 7 (Sunday); undefined: every day of the span. */
  weekdays: ReadonlySet<number> | undefined;
}

export interface Slot {
  startsAt: Temporal.Instant;
  endsAt: Temporal.Instant;
}

/**
 * The appointments of a series, by start: on each local day of the span whose weekday is listed, the window that begins
 * then is divided into steps of `raster` minutes from its start; a remainder at its end, or a step that is not entirely
 * within the span, is dropped. The window keeps its wall-clock times across a DST change, so on those days it is longer
 * or shorter. Lazy: the caller takes as many as it allows.
 */
export function* expandSeries(plan: SeriesPlan): Generator<Slot> {
  const lastDay = lastDateOf(plan);
  for (
    let day = localDate(plan.spanFrom, plan.timeZone);
    Temporal.PlainDate.compare(day, lastDay) <= 0;
    day = day.add({ days: 1 })
  ) {
    const listed = plan.weekdays === undefined || plan.weekdays.has(day.dayOfWeek);
    if (listed && exists(day, plan.timeZone)) yield* slotsOfDay(plan, day);
  }
}

/** How many local days the series has. */
export function daysOf(plan: SeriesPlan): number {
  return localDate(plan.spanFrom, plan.timeZone).until(lastDateOf(plan), { largestUnit: 'days' }).days + 1;
}

/** The last date whose window begins before the end of the span: a night that ends on the following date is one day. */
function lastDateOf({ spanTo, windowFrom, timeZone }: SeriesPlan): Temporal.PlainDate {
  const date = localDate(spanTo, timeZone);
  return isAfter(spanTo, instantOf(date.toPlainDateTime(windowFrom), timeZone)) ? date : date.subtract({ days: 1 });
}

function* slotsOfDay(plan: SeriesPlan, day: Temporal.PlainDate): Generator<Slot> {
  const isNight = Temporal.PlainTime.compare(plan.windowTo, plan.windowFrom) <= 0;
  const windowEnd = instantOf(day.add({ days: isNight ? 1 : 0 }).toPlainDateTime(plan.windowTo), plan.timeZone);
  let startsAt = instantOf(day.toPlainDateTime(plan.windowFrom), plan.timeZone);
  for (;;) {
    const endsAt = startsAt.add({ minutes: plan.raster });
    if (isAfter(endsAt, windowEnd) || isAfter(endsAt, plan.spanTo)) return;
    if (!isAfter(plan.spanFrom, startsAt)) yield { startsAt, endsAt };
    startsAt = endsAt;
  }
}

/** A zone that moves across the date line skips a whole day, as Samoa did with December 30, 2011. */
function exists(day: Temporal.PlainDate, timeZone: string): boolean {
  return day.toZonedDateTime(timeZone).toPlainDate().equals(day);
}

function localDate(instant: Temporal.Instant, timeZone: string): Temporal.PlainDate {
  return instant.toZonedDateTimeISO(timeZone).toPlainDate();
}

function isAfter(one: Temporal.Instant, other: Temporal.Instant): boolean {
  return Temporal.Instant.compare(one, other) > 0;
}
