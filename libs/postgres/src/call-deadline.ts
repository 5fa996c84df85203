import { type ClientBase, DatabaseError } from 'pg';

/**
 * What the clock of the database is ahead of `performance.now()`, by connection: another server may have another time.
 */
const offsets = new WeakMap<object, number>();

/**
 * A deadline may come too late by the time that the reading took. If it took longer, the clock is read again, and the
 * quickest of a few readings counts. In milliseconds.
 */
const quickReadingMs = 50;
const maxReadings = 3;

/** Reads the clock of the database, once for each connection, before it is used. */
export async function readClock(client: ClientBase): Promise<void> {
  let quickestMs = Number.POSITIVE_INFINITY;
  for (let reading = 1; reading <= maxReadings && quickestMs > quickReadingMs; reading += 1) {
    const askedMs = performance.now();
    const { rows } = await client.query<{ now: Date }>('SELECT clock_timestamp() AS now');
    const tookMs = performance.now() - askedMs;
    // Counted from the question on, so that no deadline comes too early.
    if (tookMs < quickestMs) offsets.set(client, rows[0]!.now.getTime() - askedMs);
    quickestMs = Math.min(quickestMs, tookMs);
  }
}

/**
 * A moment as the database tells the time.
 *
 * @param atMs by the clock of this process; may be infinite
 */
export function onClockOf(client: object, atMs: number): string {
  const offset = offsets.get(client);
  if (offset === undefined || !Number.isFinite(atMs)) return 'infinity';
  return new Date(offset + performance.now() + (atMs - Date.now())).toISOString();
}

const tooLate = 'scheduling.too_late';

/**
 * SQL that rejects the statement after a moment. Its caller has given up, and may have been told since then that
 * somebody else has the place.
 *
 * @param parameter with {@link onClockOf}
 */
export function rejectAfter(parameter: string): string {
  // There is no such setting: the only way to raise an error without a function in every database.
  return `CASE WHEN clock_timestamp() > ${parameter}::timestamptz THEN current_setting('${tooLate}') END`;
}

export function isTooLate(error: unknown): boolean {
  return error instanceof DatabaseError && error.message.includes(tooLate);
}
