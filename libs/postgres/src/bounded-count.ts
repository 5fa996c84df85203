/** Up to which number rows are counted for a message, so that it does not take longer the more there are. */
export const maxCounted = 1_000;

/** The number of rows in a message, of which one more than {@link maxCounted} were counted at most. */
export function describeCount(count: number): string {
  return count > maxCounted ? `more than ${maxCounted.toLocaleString('en')}` : String(count);
}
