import { UsageError } from './usage-error.ts';

const units = { m: 'minutes', h: 'hours', d: 'days', w: 'weeks' } as const;

/**
 * When a key expires: a date (midnight UTC) or an instant in ISO 8601, or a duration from `now`, as `90d`, `12h`,
 * `30m`, `2w` or an ISO 8601 duration such as `P1Y`. Throws a UsageError for anything else.
 */
export function parseExpiry(text: string, now: Temporal.Instant): Date {
  const short = /^(\d+)([mhdw])$/.exec(text);
  const attempts = [
    () => Temporal.Instant.from(text),
    () => Temporal.PlainDate.from(text).toZonedDateTime('UTC').toInstant(),
    () =>
      later(now, short ? { [units[short[2] as keyof typeof units]]: Number(short[1]) } : Temporal.Duration.from(text)),
  ];
  for (const attempt of attempts) {
    try {
      return new Date(attempt().epochMilliseconds);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }
  throw new UsageError(
    `"${text}" is neither a date (2027-01-31), an instant (2027-01-31T12:00Z) nor a duration (90d, 12h, P1Y)`,
  );
}

function later(now: Temporal.Instant, duration: Temporal.DurationLike): Temporal.Instant {
  return now.toZonedDateTimeISO('UTC').add(duration).toInstant();
}
