import { type ClientBase, DatabaseError } from 'pg';

/** What the clock of the database is ahead of `performance.now()`, by connection: another server may have another time. */
const offsets = new WeakMap<object, number>();

/** The clock is read again if the reading took longer, and with it the time by which a deadline may come too late. In milliseconds. */
const maxReadingMs = 500;
const maxReadings = 3;

/** Reads the clock of the database, once for each connection, before it is used. */
export async function readClock(client: ClientBase): Promise<void> {
  for (let reading = 1; reading <= maxReadings; reading += 1) {
    const asked = performance.now();
    const { rows } = await client.query<{ now: Date }>('SELECT clock_timestamp() AS now');
    // Counted from the question on, so that no deadline comes too early.
    offsets.set(client, rows[0]!.now.getTime() - asked);
    if (performance.now() - asked <= maxReadingMs) return;
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
 * SQL that rejects the statement after a moment. Its caller has given up, and may have been told since then that somebody else has the place.
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
