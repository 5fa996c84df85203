const dateTimePattern = /^(\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.0+)?)?)(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$/;

/** The years that a calendar needs and that every part of the system can hold and write with four digits. */
const earliest = Temporal.Instant.from('1900-01-01T00:00Z');
const latest = Temporal.Instant.from('9999-12-31T00:00Z');

/**
 * Reads YYYY-MM-DDThh:mm, with optional seconds and with Z or an offset, else as a local time of the zone. A local time that DST skips takes
 * the offset before the gap, one that occurs twice is the first occurrence (RFC 5545). Undefined when the text is no such date-time.
 */
export function parseDateTime(text: string, timeZone: string): Date | undefined {
  const [, local, offset] = dateTimePattern.exec(text) ?? [];
  if (local === undefined) return undefined;
  const instant = offset === undefined ? localInstant(local, timeZone) : offsetInstant(local, offset);
  if (instant === undefined || isBefore(instant, earliest) || isBefore(latest, instant)) return undefined;
  return toDate(instant);
}

/** The time of day that such a text means on the zone's clock, also when that day's DST change skips it. Undefined as for {@link parseDateTime}. */
export function parseTimeOfDay(text: string, timeZone: string): Temporal.PlainTime | undefined {
  const instant = parseDateTime(text, timeZone);
  if (instant === undefined) return undefined;
  const [, local, offset] = dateTimePattern.exec(text)!;
  if (offset === undefined) return Temporal.PlainTime.from(local!);
  return Temporal.Instant.fromEpochMilliseconds(instant.getTime()).toZonedDateTimeISO(timeZone).toPlainTime();
}

/** The instant of a wall-clock time in a zone, by the rule of {@link parseDateTime}. */
export function instantOf(local: Temporal.PlainDateTime, timeZone: string): Temporal.Instant {
  return local.toZonedDateTime(timeZone, { disambiguation: 'compatible' }).toInstant();
}

export function toDate(instant: Temporal.Instant): Date {
  return new Date(instant.epochMilliseconds);
}

function localInstant(local: string, timeZone: string): Temporal.Instant | undefined {
  const dateTime = undefinedIfOutOfRange(() => Temporal.PlainDateTime.from(local, { overflow: 'reject' }));
  return dateTime && instantOf(dateTime, timeZone);
}

function offsetInstant(local: string, offset: string): Temporal.Instant | undefined {
  return undefinedIfOutOfRange(() => Temporal.Instant.from(local + offset));
}

/** Temporal throws a RangeError for a day such as February 30. */
function undefinedIfOutOfRange<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function isBefore(one: Temporal.Instant, other: Temporal.Instant): boolean {
  return Temporal.Instant.compare(one, other) < 0;
}
