import type { ListOwnTimesResponse, OwnTime } from '@scheduling/contracts/calendar/v1';
import { formatPeriod, formatTimes, regionalLocale, type Times } from '@scheduling/presentation';
import { describeAdvice } from './describe-advice.ts';
import { situationOf } from './describe-booking.ts';
import type { PageContent } from './render-page.ts';
import type { Texts } from './texts/texts.ts';
import type { Visit } from './visit.ts';

/** A week of times, Monday to Sunday. */
export type Week = Pick<ListOwnTimesResponse, 'times' | 'hasPrevious' | 'hasNext'> & { monday: string };

/** The page with the times of a week, each of which leads to a question. */
export function describeWeek(visit: Visit, { monday, times, hasPrevious, hasNext }: Week): PageContent {
  const { booking, texts, locale, links } = visit;
  const first = Temporal.PlainDate.from(monday);
  const place: Place = { timeZone: booking.timeZone, locale };
  const { zone, range } = describeSpan(place, first);
  return {
    title: texts.move.title,
    zone: texts.move.zone(zone),
    note: situationOf(booking) === 'requested' ? texts.move.request : undefined,
    range,
    days: describeDays(place, times, (time: OwnTime) => ({ href: links.confirm(monday, time.place!) })),
    empty: texts.move.emptyWeek,
    weeks: describeWeeks({ hasPrevious, hasNext }, texts, (days) => links.move(first.add({ days }).toString())),
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

/** The weeks before and after one, to which a link leads that so many days are added to. */
export function describeWeeks(
  { hasPrevious, hasNext }: Pick<Week, 'hasPrevious' | 'hasNext'>,
  { move: { previous, next } }: Texts,
  linkTo: (days: number) => string,
): { href: string; text: string }[] {
  return [
    ...(hasPrevious ? [{ href: linkTo(-7), text: previous }] : []),
    ...(hasNext ? [{ href: linkTo(7), text: next }] : []),
  ];
}

/** Where times are, and for whom they are written. */
export interface Place {
  timeZone: string;
  locale: string;
}

/** The dates of a week, and the zone of its times; both names if the clock is changed in it. */
export function describeSpan(
  { timeZone, locale }: Place,
  monday: Temporal.PlainDate,
  inZone = timeZone,
): { range: string; zone: string } {
  const [start, end] = [monday, monday.add({ days: 7 })].map(
    (date) => new Date(date.toZonedDateTime(timeZone).epochMilliseconds),
  ) as [Date, Date];
  const lastSecond = new Date(end.getTime() - 1_000);
  const { zone, offset } = formatPeriod(start, lastSecond, inZone, locale);
  const range = dateFormat({ timeZone, locale }, 'long');
  return { range: range.formatRange(start, lastSecond), zone: `${zone} (${offset})` };
}

/** What choosing a time does: a link leads on, a button sends a value. */
export interface TimeControl {
  href?: string;
  value?: string;
  /** The same time in another zone. */
  also?: string | undefined;
}

interface TimeView extends TimeControl {
  text: string;
  /** The last word of the time, if it can be left unseen: a narrow screen has no room for it in each time. */
  unit?: string | undefined;
}

interface DayView {
  heading: string;
  times: TimeView[];
}

/** Times under the days on which they start. */
export function describeDays<Time extends { start?: Date | undefined; end?: Date | undefined }>(
  place: Place,
  times: Time[],
  controlOf: (time: Time) => TimeControl,
): DayView[] {
  const days = new Map<string, DayView>();
  const dates = dateFormat(place, 'full');
  for (const time of times) {
    const period = formatTimes(time.start!, time.end!, place.timeZone, place.locale);
    const heading = period.isOneDay ? period.lines[0]! : dates.format(time.start);
    const day = days.get(heading) ?? { heading, times: [] };
    day.times.push({ ...controlOf(time), ...timesOf(period) });
    days.set(heading, day);
  }
  return [...days.values()];
}

function dateFormat({ timeZone, locale }: Place, dateStyle: 'long' | 'full'): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat(regionalLocale(locale, timeZone), { timeZone, dateStyle });
}

/** Without the date, unless it ends on another day. */
function timesOf({ lines: [first, last], isOneDay, unit }: Times): Pick<TimeView, 'text' | 'unit'> {
  if (!isOneDay) return { text: `${first} ${last}` };
  return unit !== '' && last!.endsWith(unit) ? { text: last!.slice(0, -unit.length), unit } : { text: last! };
}
