import type { ListOwnTimesResponse, OwnTime } from '@scheduling/contracts/calendar/v1';
import { formatPeriod, formatTimes, regionalLocale, type Times } from '@scheduling/presentation';
import { describeAdvice } from './describe-advice.ts';
import { situationOf } from './describe-booking.ts';
import type { PageContent } from './render-page.ts';
import type { Visit } from './visit.ts';

/** A week of times, Monday to Sunday. */
export type Week = Pick<ListOwnTimesResponse, 'times' | 'hasPrevious' | 'hasNext'> & { monday: string };

/** The page with the times of a week, each of which leads to a question. */
export function describeWeek(visit: Visit, { monday, times, hasPrevious, hasNext }: Week): PageContent {
  const { booking, texts, links } = visit;
  const first = Temporal.PlainDate.from(monday);
  const { zone, range } = describeSpan(visit, first);
  const weeks = [
    ...(hasPrevious ? [{ href: links.move(first.subtract({ days: 7 }).toString()), text: texts.move.previous }] : []),
    ...(hasNext ? [{ href: links.move(first.add({ days: 7 }).toString()), text: texts.move.next }] : []),
  ];
  return {
    title: texts.move.title,
    zone: texts.move.zone(zone),
    note: situationOf(booking) === 'requested' ? texts.move.request : undefined,
    range,
    days: daysOf(visit, monday, times),
    empty: texts.move.emptyWeek,
    weeks,
    weeksLabel: texts.move.weeks,
    back: { href: links.booking(), text: texts.move.back },
  };
}

/** The page when no week has a time. */
export function describeNoTimes(visit: Visit): PageContent {
  const { texts, links } = visit;
  return {
    ...texts.move.none,
    advice: describeAdvice(visit),
    back: { href: links.booking(), text: texts.backToBooking },
  };
}

/** The dates of a week, and the zone of its times; both names if the clock is changed in it. */
function describeSpan({ booking, locale }: Visit, monday: Temporal.PlainDate): { range: string; zone: string } {
  const [start, end] = [monday, monday.add({ days: 7 })].map(
    (date) => new Date(date.toZonedDateTime(booking.timeZone).epochMilliseconds),
  ) as [Date, Date];
  const lastSecond = new Date(end.getTime() - 1_000);
  const { zone, offset } = formatPeriod(start, lastSecond, booking.timeZone, locale);
  const range = dateFormat({ booking, locale }, 'long');
  return { range: range.formatRange(start, lastSecond), zone: `${zone} (${offset})` };
}

interface TimeView {
  href: string;
  text: string;
  /** The last word of the time, if it can be left unseen: a narrow screen has no room for it in each time. */
  unit?: string | undefined;
}

interface DayView {
  heading: string;
  times: TimeView[];
}

function daysOf({ booking, locale, links }: Visit, monday: string, times: OwnTime[]): DayView[] {
  const days = new Map<string, DayView>();
  const dates = dateFormat({ booking, locale }, 'full');
  for (const { start, end, place } of times) {
    const period = formatTimes(start!, end!, booking.timeZone, locale);
    const heading = period.isOneDay ? period.lines[0]! : dates.format(start);
    const day = days.get(heading) ?? { heading, times: [] };
    day.times.push({ href: links.confirm(monday, place!), ...timesOf(period) });
    days.set(heading, day);
  }
  return [...days.values()];
}

function dateFormat(
  { booking: { timeZone }, locale }: Pick<Visit, 'booking' | 'locale'>,
  dateStyle: 'long' | 'full',
): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat(regionalLocale(locale, timeZone), { timeZone, dateStyle });
}

/** Without the date, unless it ends on another day. */
function timesOf({ lines: [first, last], isOneDay, unit }: Times): Omit<TimeView, 'href'> {
  if (!isOneDay) return { text: `${first} ${last}` };
  return unit !== '' && last!.endsWith(unit) ? { text: last!.slice(0, -unit.length), unit } : { text: last! };
}
