export interface Period {
  /** A date and its times, or start and end with their dates if they are on different days. */
  lines: string[];
  /** Name of the time zone. */
  zone: string;
  /** For the calendar icon. */
  leaf: { weekday: string; day: string; month: string };
}

/** When an appointment takes place, in a time zone and formatted for a language. */
export function formatPeriod(start: Date, end: Date, timeZone: string, locale: string): Period {
  const format = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat => new Intl.DateTimeFormat(locale, { timeZone, ...options });
  const date = format({ dateStyle: 'full' });
  const moment = format({ dateStyle: 'full', timeStyle: 'short' });
  const sameDay = date.format(start) === date.format(end);
  const part = (of: Date, options: Intl.DateTimeFormatOptions, type: Intl.DateTimeFormatPartTypes): string =>
    format(options)
      .formatToParts(of)
      .find((each) => each.type === type)?.value ?? '';
  return {
    lines: sameDay ? [date.format(start), format({ timeStyle: 'short' }).formatRange(start, end)] : [`${moment.format(start)} –`, moment.format(end)],
    zone: part(start, { timeZoneName: 'long', year: 'numeric' }, 'timeZoneName') || timeZone,
    leaf: {
      weekday: part(start, { weekday: 'short' }, 'weekday'),
      day: part(start, { day: 'numeric' }, 'day'),
      month: part(start, { day: 'numeric', month: 'short' }, 'month'),
    },
  };
}
