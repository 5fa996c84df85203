/** The IANA name in its usual spelling, undefined if there is no such zone. Offsets such as `+01:00` are not names. */
export function parseTimeZone(text: string): string | undefined {
  if (!/^[A-Za-z]/.test(text)) return undefined;
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(text).timeZoneId;
  } catch {
    return undefined;
  }
}
