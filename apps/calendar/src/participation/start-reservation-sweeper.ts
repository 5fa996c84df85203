import { originJson } from '@scheduling/messaging';
import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { type Kysely, sql } from 'kysely';
import { databaseNow } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { BookingMetrics } from './booking-metrics.ts';

export interface SweeperOptions {
  database: Database<CalendarSchema>;
  bookings: BookingMetrics;
  logger: Logger;
}

/** An expired reservation must be gone from the table within 5 s. Those that expire at about the same time are removed together. */
const shortestPauseMs = 2_000;
/** A reservation lasts 3 minutes, so each is seen long before it expires, whichever replica created it. */
const longestPauseMs = 30_000;
const batchSize = 200;

/**
 * Removes the rows of expired reservations within about 2 s. Expired reservations take no seat and are hidden even without it. Every replica may
 * run one: they skip rows that another has locked.
 */
export function startReservationSweeper({ database, bookings, logger }: SweeperOptions): AsyncDisposable {
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
      const { rows } = await sql<{ result: { swept: number } }>`SELECT sweep_reservations(${request}) AS result`.execute(database.kysely);
      const { swept } = rows[0]!.result;
      bookings.expired(database.kysely, swept);
      pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, await nextExpiryMs(database.kysely)));
      return swept;
    },
  });
}

/** How long until the next reservation expires; negative for one that has expired and could not be removed yet. */
async function nextExpiryMs(db: Kysely<CalendarSchema>): Promise<number> {
  const { remaining } = await db
    .selectFrom('participation')
    .select(sql<number | null>`(extract(epoch FROM min(reserved_until) - ${databaseNow}) * 1000)::float8`.as('remaining'))
    .where('state', '=', 'RESERVED')
    .executeTakeFirstOrThrow();
  return remaining ?? Number.POSITIVE_INFINITY;
}
