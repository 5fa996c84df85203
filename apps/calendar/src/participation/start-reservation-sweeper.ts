import { originJson } from '@scheduling/messaging';
import type { Database } from '@scheduling/postgres';
import { type Logger, type Loop, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { BookingMetrics } from './booking-metrics.ts';

export interface SweeperOptions {
  database: Database<CalendarSchema>;
  bookings: BookingMetrics;
  logger: Logger;
}

/**
 * An expired reservation must be gone from the table within 5 s. Those that expire at about the same time are removed
 * together.
 */
const shortestPauseMs = 2_000;
/** A reservation lasts 3 minutes, so each is seen long before it expires, whichever replica created it. */
const longestPauseMs = 30_000;
const batchSize = 200;

/**
 * Removes the rows of expired reservations within about 2 s. Expired reservations take no seat and are hidden even
 * without it. Every replica may run one: they skip rows that another has locked. Whoever sets the clock of a sandbox
 * wakes one.
 */
export function startReservationSweeper({ database, bookings, logger }: SweeperOptions): Loop {
  let pauseMs = shortestPauseMs;
  return startLoop({
    name: 'the removal of expired reservations',
    logger,
    everyMs: () => pauseMs,
    batch: batchSize,
    run: async (limit) => {
      // This also limits the retries after a failure.
      pauseMs = shortestPauseMs;
      const request = JSON.stringify({ limit, origin: originJson() });
      const { rows } = await sql<{
        result: { swept: number; nextInMs: number | null };
      }>`SELECT sweep_reservations(${request}) AS result`.execute(database.kysely);
      const { swept, nextInMs } = rows[0]!.result;
      bookings.expired(database.kysely, swept);
      pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, nextInMs ?? longestPauseMs));
      return swept;
    },
  });
}
