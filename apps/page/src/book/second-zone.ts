import { formatPeriod, formatTimes, regionalLocale } from '@scheduling/presentation';
import type { PeriodView } from '../describe-booking.ts';
import { describeTimes } from '../describe-booking.ts';
import type { PageVisit } from './page-visit.ts';

/** A period in the provider's zone, and in the second one. */
export function describePagePeriod(
  { page: { timeZone }, locale, secondZone }: Pick<PageVisit, 'page' | 'locale' | 'secondZone'>,
  { start, end }: { start?: Date | undefined; end?: Date | undefined },
): PeriodView {
  const period = describeTimes({ start: start!, end: end!, timeZone }, locale);
  if (secondZone === undefined) return period;
  const { lines, isOneDay, zone, offset } = formatPeriod(start!, end!, secondZone, regionalLocale(locale, timeZone));
  return { ...period, also: `${lines.join(isOneDay ? ', ' : ' ')}, ${zone} (${offset})` };
}

/**
 * Returns a function that says times in the second zone, with the day if it is another one there; one that says
 * nothing if there is no such zone.
 */
export function createSecondTimes({
  page: { timeZone },
  locale: given,
  secondZone,
}: PageVisit): (start: Date, end: Date) => string | undefined {
  if (secondZone === undefined) return () => undefined;
  // As people write times where the provider is: two ways to write them on one page would be confusing.
  const locale = regionalLocale(given, timeZone);
  const weekday = new Intl.DateTimeFormat(locale, { weekday: 'short', timeZone: secondZone });
  const timeOf = (at: Date): string | undefined => formatTimes(at, at, secondZone, locale).lines[1];
  return (start, end) => {
    const { lines, isOneDay, unit } = formatTimes(start, end, secondZone, locale);
    if (!isOneDay) return [start, end].map((at) => `${weekday.format(at)} ${timeOf(at)}`).join(' – ');
    const isSameDay = dayIn(start, secondZone).equals(dayIn(start, timeZone));
    return withoutUnit(isSameDay ? lines[1]! : `${weekday.format(start)} ${lines[1]}`, unit);
  };
}

export function dayIn(at: Date, timeZone: string): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(at.getTime()).toZonedDateTimeISO(timeZone).toPlainDate();
}

/** The line above it has the unit. */
function withoutUnit(times: string, unit: string): string {
  return unit !== '' && times.endsWith(unit) ? times.slice(0, -unit.length) : times;
}
