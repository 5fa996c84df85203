const endsWithOffset = /(?:Z|[+-]\d\d:\d\d)$/;

/**
 * The instant of YYYY-MM-DDThh:mm with optional seconds, in UTC (Z), at an offset or, without either, in the zone. A
 * local time that DST skips takes the offset before the gap; one that occurs twice means the first occurrence (RFC
 * 5545). The gateway has checked the format.
 */
export function parseDateTime(text: string, timeZone: string): Date {
  return toDate(
    endsWithOffset.test(text) ? Temporal.Instant.from(text) : instantOf(Temporal.PlainDateTime.from(text), timeZone),
  );
}

/** The local time of day in the zone, even if that day's DST change skips it. */
export function parseTimeOfDay(text: string, timeZone: string): Temporal.PlainTime {
  return endsWithOffset.test(text)
    ? Temporal.Instant.from(text).toZonedDateTimeISO(timeZone).toPlainTime()
    : Temporal.PlainTime.from(text);
}

/** The instant of a wall-clock time in a zone, by the rule of {@link parseDateTime}. */
export function instantOf(local: Temporal.PlainDateTime, timeZone: string): Temporal.Instant {
  return local.toZonedDateTime(timeZone, { disambiguation: 'compatible' }).toInstant();
}

export function toDate(instant: Temporal.Instant): Date {
  return new Date(instant.epochMilliseconds);
}

export function toInstant(date: Date): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(date.getTime());
}

/** The same wall-clock time so many dates later, by the rule of {@link parseDateTime}. */
export function addDays(date: Date, days: number, timeZone: string): Date {
  return toDate(toInstant(date).toZonedDateTimeISO(timeZone).add({ days }).toInstant());
}
