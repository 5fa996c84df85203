import type { Database } from '@scheduling/postgres';
import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { sql } from 'kysely';
import { Counter } from 'prom-client';
import type { CalendarSchema } from '../db/schema.ts';

export interface HoursMetrics {
  made(timeslots: number): void;
}

export function createHoursMetrics(metrics: Metrics, database: Database<CalendarSchema>): HoursMetrics {
  measureAtScrape(
    metrics,
    {
      scheduling_timeslot_making_lag_seconds: {
        help: 'How long it is overdue to make timeslots from the opening hours for which that is longest, across all replicas; 0 if all have been made',
      },
    },
    async () => ({ scheduling_timeslot_making_lag_seconds: [{ value: await readLag(database) }] }),
  );
  const made = new Counter({
    name: 'scheduling_timeslots_made_total',
    help: 'Timeslots that were made from opening hours',
    registers: [metrics],
  });
  return { made: (timeslots) => made.inc(timeslots) };
}

async function readLag({ kysely }: Database<CalendarSchema>): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    SELECT greatest(0, coalesce(extract(epoch FROM scheduling_now() - min(due_at)), 0))::float8 AS seconds FROM resource_hours`.execute(
    kysely,
  );
  return rows[0]!.seconds;
}
