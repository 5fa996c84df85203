/** The most rows that are counted for a message, so that counting stays fast. */
export const maxCounted = 1_000;

/** Formats a count that stopped at {@link maxCounted} + 1. */
export function describeCount(count: number): string {
  return count > maxCounted ? `more than ${maxCounted.toLocaleString('en')}` : String(count);
}
