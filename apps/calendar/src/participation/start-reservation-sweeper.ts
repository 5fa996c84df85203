import type { Database } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import { sql } from 'kysely';
import { setTimeout as delay } from 'node:timers/promises';
import type { CalendarSchema } from '../db/schema.ts';
import type { BookingMetrics } from './booking-metrics.ts';

export interface SweeperOptions {
  database: Database<CalendarSchema>;
  bookings: BookingMetrics;
  logger: Logger;
}

/** An expired reservation must be gone from the table within 5 s. */
const pauseMs = 2_000;
const batchSize = 200;

/**
 * Removes the rows of reservations that are over, every 2 s. That they take no seat and are not shown does not depend on it. Every
 * replica may run one: they skip what another has in hand.
 */
export function startReservationSweeper(options: SweeperOptions): AsyncDisposable {
  const stopping = new AbortController();
  const running = sweepForever(options, stopping.signal);
  return {
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await running;
    },
  };
}

async function sweepForever({ database, bookings, logger }: SweeperOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const swept = await sweep(database);
      bookings.expired(swept);
      if (swept >= batchSize) continue;
    } catch (error) {
      logger.warn({ err: error }, 'expired reservations could not be removed, trying again');
    }
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

async function sweep(database: Database<CalendarSchema>): Promise<number> {
  const { rows } = await sql<{ swept: number }>`SELECT sweep_reservations(${batchSize}) AS swept`.execute(database.kysely);
  return rows[0]!.swept;
}
