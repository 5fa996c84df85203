import { LRUCache } from 'lru-cache';

export interface Period {
  /** A date and its times, or start and end with their dates if they are on different days. */
  lines: string[];
  /** Name of the time zone. */
  zone: string;
  /** For the calendar icon. */
  leaf: { weekday: string; day: string; month: string };
}

interface Place {
  timeZone: string;
  locale: string;
}

/** To make formats takes much longer than to use them. */
const formats = new LRUCache<string, ReturnType<typeof createFormats>, Place>({ max: 50, memoMethod: (_key, _stale, { context }) => createFormats(context) });

/** When an appointment takes place, in a time zone and formatted for a language. */
export function formatPeriod(start: Date, end: Date, timeZone: string, locale: string): Period {
  const place = { timeZone, locale: regionalLocale(locale, timeZone) };
  const { date, moment, time, zone, weekday, day, month } = formats.memo(`${place.locale} ${timeZone}`, { context: place });
  const sameDay = date.format(start) === date.format(end);
  const part = (format: Intl.DateTimeFormat, type: Intl.DateTimeFormatPartTypes): string => format.formatToParts(start).find((each) => each.type === type)?.value ?? '';
  return {
    lines: sameDay ? [date.format(start), time.formatRange(start, end)] : [`${moment.format(start)} –`, moment.format(end)],
    zone: part(zone, 'timeZoneName') || timeZone,
    leaf: { weekday: part(weekday, 'weekday'), day: part(day, 'day'), month: part(month, 'month') },
  };
}

const european = /^(?:Europe|Arctic)\/|^(?:Atlantic\/(?:Azores|Canary|Faroe|Madeira|Reykjavik)|Asia\/(?:Famagusta|Nicosia))$/;

/** English without a region means American English, with AM and PM. In Europe, it is the British one, with 24 hours. */
function regionalLocale(locale: string, timeZone: string): string {
  const { language, region } = new Intl.Locale(locale);
  return language === 'en' && region === undefined && european.test(timeZone) ? 'en-GB' : locale;
}

function createFormats({ timeZone, locale }: Place) {
  const format = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat => new Intl.DateTimeFormat(locale, { timeZone, ...options });
  return {
    date: format({ dateStyle: 'full' }),
    moment: format({ dateStyle: 'full', timeStyle: 'short' }),
    time: format({ timeStyle: 'short' }),
    zone: format({ timeZoneName: 'long', year: 'numeric' }),
    weekday: format({ weekday: 'short' }),
    day: format({ day: 'numeric' }),
    month: format({ day: 'numeric', month: 'short' }),
  };
}
