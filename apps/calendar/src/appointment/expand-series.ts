import { instantOf } from '../date-time.ts';

export interface SeriesPlan {
  timeZone: string;
  /** The first and last instant of the series; nothing is outside. */
  spanFrom: Temporal.Instant;
  spanTo: Temporal.Instant;
  /** Times of day, on the wall clock, between which there are appointments. */
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
 * The appointments of a series, by start: on each local day of the span whose weekday is listed, the daily window is divided into steps of
 * `raster` minutes from its start; a remainder at its end, or a step that is not entirely within the span, is dropped. The window keeps its
 * wall-clock times across a DST change, so on those days it is longer or shorter. Lazy: the caller takes as many as it allows.
 */
export function* expandSeries(plan: SeriesPlan): Generator<Slot> {
  const lastDay = localDate(plan.spanTo, plan.timeZone);
  for (let day = localDate(plan.spanFrom, plan.timeZone); Temporal.PlainDate.compare(day, lastDay) <= 0; day = day.add({ days: 1 })) {
    const listed = plan.weekdays === undefined || plan.weekdays.has(day.dayOfWeek);
    if (listed && exists(day, plan.timeZone)) yield* slotsOfDay(plan, day);
  }
}

/** How many local days the span touches. */
export function daysOfSpan({ spanFrom, spanTo, timeZone }: Pick<SeriesPlan, 'spanFrom' | 'spanTo' | 'timeZone'>): number {
  return localDate(spanFrom, timeZone).until(localDate(spanTo, timeZone), { largestUnit: 'days' }).days + 1;
}

function* slotsOfDay(plan: SeriesPlan, day: Temporal.PlainDate): Generator<Slot> {
  const windowEnd = instantOf(day.toPlainDateTime(plan.windowTo), plan.timeZone);
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
