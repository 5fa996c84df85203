import { LRUCache } from 'lru-cache';
import { occursTwice } from './occurs-twice.ts';

export interface Times {
  /**
   * A date and its times, or start and end with their dates if they are on different days. With their offsets from UTC,
   * if the times alone would be ambiguous.
   */
  lines: string[];
  /** Whether it starts and ends on the same day. */
  isOneDay: boolean;
  /** What the language writes behind a time, with the space before it; empty in most. */
  unit: string;
}

export interface Period extends Times {
  /** Name of the time zone; both names if the clock is changed in between. */
  zone: string;
  /** Its offset from UTC, such as UTC+2; both if the clock is changed in between. */
  offset: string;
  /** For the calendar icon. */
  leaf: { weekday: string; day: string; month: string };
}

interface Place {
  timeZone: string;
  locale: string;
}

/** To make formats takes much longer than to use them. */
const formats = new LRUCache<string, ReturnType<typeof createFormats>, Place>({
  max: 50,
  memoMethod: (_key, _stale, { context }) => createFormats(context),
});

/** When an appointment takes place, in a time zone and formatted for a language. */
export function formatPeriod(start: Date, end: Date, timeZone: string, locale: string): Period {
  const { zone, weekday, day, month } = formatsOf(timeZone, locale);
  const part = (format: Intl.DateTimeFormat, type: Intl.DateTimeFormatPartTypes, at = start): string =>
    format.formatToParts(at).find((each) => each.type === type)?.value ?? '';
  return {
    ...formatTimes(start, end, timeZone, locale),
    zone: [...new Set([start, end].map((at) => part(zone, 'timeZoneName', at) || timeZone))].join(' – '),
    offset: [...new Set([start, end].map((at) => nameOffset(localTime(at, timeZone))))].join(' – '),
    leaf: { weekday: part(weekday, 'weekday'), day: part(day, 'day'), month: part(month, 'month') },
  };
}

/** What {@link formatPeriod} says of the times alone: for pages with many of them. */
export function formatTimes(start: Date, end: Date, timeZone: string, locale: string): Times {
  const { date, moment, time, unit, ranges } = formatsOf(timeZone, locale);
  const [first, last] = [localTime(start, timeZone), localTime(end, timeZone)];
  const sameDay = first.toPlainDate().equals(last.toPlainDate());
  // Otherwise a period may seem to end before it starts, or to be in the other of two hours.
  const hasOffsets = first.offset !== last.offset || occursTwice(first) || occursTwice(last);
  const [ofStart, ofEnd] = hasOffsets
    ? [`${unit} (${nameOffset(first)})`, `${unit} (${nameOffset(last)})`]
    : [unit, unit];
  const [from, to] = [`${time.format(start)}${ofStart}`, `${time.format(end)}${ofEnd}`];
  if (!sameDay) {
    const lines = [`${moment.format(start)}${ofStart} –`, `${moment.format(end)}${ofEnd}`];
    return { lines, isOneDay: false, unit };
  }
  const ofBoth = `${from} – ${to}`;
  const times = from === to ? from : hasOffsets ? ofBoth : ranges.memo(ofBoth, { context: [start, end] });
  return { lines: [date.format(start), times], isOneDay: true, unit };
}

function localTime(at: Date, timeZone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(at.getTime()).toZonedDateTimeISO(timeZone);
}

/** A date and a time with the short name of the time zone, such as `Tue, 1 Dec 2026, 14:00 (CET)`. */
export function formatMoment(at: Date, timeZone: string, locale: string): string {
  const { shortDate, time, shortZone, unit } = formatsOf(timeZone, locale);
  const zone = shortZone.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? timeZone;
  return `${shortDate.format(at)}, ${time.format(at)}${unit} (${zone})`;
}

/** The same in fewer characters, for subjects: `Tue 1 Dec, 14:00`, with the year if it is not the one of `now`. */
export function formatStart(at: Date, now: Date, timeZone: string, locale: string): string {
  const { shortDate, shortDay, time, unit } = formatsOf(timeZone, locale);
  const isThisYear = localTime(at, timeZone).year === localTime(now, timeZone).year;
  return `${(isThisYear ? shortDay : shortDate).format(at)}, ${time.format(at)}${unit}`;
}

/** A day without its year: `Monday 1 July`. `date` is YYYY-MM-DD. */
export function formatDay(date: string, timeZone: string, locale: string): string {
  const { longDay } = formatsOf(timeZone, locale);
  return longDay.format(Temporal.PlainDate.from(date).toZonedDateTime(timeZone).epochMilliseconds);
}

/** UTC, UTC+2, UTC−3:30. */
function nameOffset({ offset }: Temporal.ZonedDateTime): string {
  const [, sign, hours, minutes] = /^([+-])0?(\d+):(.+)$/.exec(offset)!;
  if (Number(hours) === 0 && minutes === '00') return 'UTC';
  return `UTC${sign === '-' ? '−' : '+'}${hours}${minutes === '00' ? '' : `:${minutes}`}`;
}

const european =
  /^(?:Europe|Arctic)\/|^(?:Atlantic\/(?:Azores|Canary|Faroe|Madeira|Reykjavik)|Asia\/(?:Famagusta|Nicosia))$/;

/** English without a region means American English, with AM and PM. In Europe, it is the British one, with 24 hours. */
export function regionalLocale(locale: string, timeZone: string): string {
  const { language, region } = new Intl.Locale(locale);
  return language === 'en' && region === undefined && european.test(timeZone) ? 'en-GB' : locale;
}

function formatsOf(timeZone: string, locale: string): ReturnType<typeof createFormats> {
  return formats.memo(`${locale} ${timeZone}`, { context: { timeZone, locale } });
}

function createFormats({ timeZone, locale: given }: Place) {
  const locale = regionalLocale(given, timeZone);
  const format = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
    new Intl.DateTimeFormat(locale, { timeZone, ...options });
  const time = format({ timeStyle: 'short' });
  return {
    date: format({ dateStyle: 'full' }),
    moment: format({ dateStyle: 'full', timeStyle: 'short' }),
    time,
    unit: unitOf(time),
    // To format a range takes as long as to format six times.
    ranges: new LRUCache<string, string, [start: Date, end: Date]>({
      max: 2_000,
      memoMethod: (_key, _stale, { context: [start, end] }) => time.formatRange(start, end),
    }),
    zone: format({ timeZoneName: 'long', year: 'numeric' }),
    shortDate: format({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' }),
    shortDay: format({ weekday: 'short', day: 'numeric', month: 'short' }),
    longDay: format({ weekday: 'long', day: 'numeric', month: 'long' }),
    shortZone: format({ timeZoneName: 'short', year: 'numeric' }),
    weekday: format({ weekday: 'short' }),
    day: format({ day: 'numeric' }),
    month: format({ day: 'numeric', month: 'short' }),
  };
}

/**
 * What a language writes behind a time, such as " Uhr" in German: Intl puts it behind two times, but not behind one.
 */
function unitOf(time: Intl.DateTimeFormat): string {
  const last = time.formatRangeToParts(0, 60_000).at(-1)!;
  return last.type === 'literal' ? last.value : '';
}
