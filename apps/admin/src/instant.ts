import { InvalidArgumentError } from 'commander';

/** The value of an option. */
export function parseInstant(text: string): Date {
  try {
    return new Date(Temporal.Instant.from(text).epochMilliseconds);
  } catch {
    throw new InvalidArgumentError('It must be an instant with a time zone, such as 2026-11-21T04:00:00Z.');
  }
}
