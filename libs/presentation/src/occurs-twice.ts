/** Whether the wall clock shows this date and time twice, because it is set back. */
export function occursTwice(time: Temporal.ZonedDateTime): boolean {
  const local = time.toPlainDateTime();
  const [first, last] = (['earlier', 'later'] as const).map((disambiguation) =>
    local.toZonedDateTime(time.timeZoneId, { disambiguation }),
  );
  return !first!.equals(last!);
}
