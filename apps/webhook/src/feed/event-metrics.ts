import type { Database } from '@scheduling/postgres';
import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { sql } from 'kysely';
import { Counter } from 'prom-client';
import type { WebhookSchema } from '../db/schema.ts';

/** The count is capped: many waiting events must not slow down the scrape. */
const maxCounted = 10_000;

/**
 * Measures the events that have arrived and are not in the feed yet. Returns what counts those that did not arrive in
 * time.
 */
export function registerEventMetrics(metrics: Metrics, database: Database<WebhookSchema>): (missing: number) => void {
  measureAtScrape(
    metrics,
    {
      scheduling_events_waiting: {
        help: `Events that have arrived and wait for their place in the feed, across all replicas; capped at ${maxCounted}`,
      },
      scheduling_event_longest_wait_seconds: { help: 'How long the oldest of them has waited; 0 if there are none' },
    },
    async () => {
      const { count, seconds } = await readWaitingEvents(database);
      return {
        scheduling_events_waiting: [{ value: count }],
        scheduling_event_longest_wait_seconds: [{ value: seconds }],
      };
    },
  );
  const missing = new Counter({
    name: 'scheduling_events_missing_total',
    help: 'Versions of bookings, appointments and customers, and places in the order of appointments, whose events did not arrive in time: the feed continued without them',
    registers: [metrics],
  });
  return (count) => missing.inc(count);
}

/** How many there are, and how long the oldest one has waited. */
export async function readWaitingEvents({
  kysely,
}: Database<WebhookSchema>): Promise<{ count: number; seconds: number }> {
  const { rows } = await sql<{ count: number; seconds: number }>`
    SELECT count(*) AS count, coalesce(extract(epoch FROM now() - min(arrived_at)), 0)::float8 AS seconds
      FROM (SELECT arrived_at FROM incoming_event LIMIT ${maxCounted}) AS waiting`.execute(kysely);
  return rows[0]!;
}
