import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { BookingMetrics } from './booking-metrics.ts';

export interface SweeperOptions {
  database: Database<CalendarSchema>;
  bookings: BookingMetrics;
  logger: Logger;
}

/** An expired reservation must be gone from the table within 5 s. */
const everyMs = 2_000;
const batchSize = 200;

/**
 * Removes the rows of expired reservations, every 2 s. That they take no seat and are not shown does not depend on it. Every replica may run
 * one: they skip what another has in hand.
 */
export function startReservationSweeper({ database, bookings, logger }: SweeperOptions): AsyncDisposable {
  return startLoop({
    name: 'the removal of expired reservations',
    logger,
    everyMs,
    batch: batchSize,
    run: async (limit) => {
      const { rows } = await sql<{ result: { swept: number } }>`SELECT sweep_reservations(${JSON.stringify({ limit })}) AS result`.execute(database.kysely);
      const { swept } = rows[0]!.result;
      bookings.expired(database.kysely, swept);
      return swept;
    },
  });
}
