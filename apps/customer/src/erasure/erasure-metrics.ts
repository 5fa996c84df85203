import type { Database } from '@scheduling/postgres';
import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';

/**
 * How many erasures are open, and the age of the oldest; read from the database at each scrape, using the index on the
 * open ones.
 */
export function createErasureMetrics(metrics: Metrics, { kysely }: Database<CustomerSchema>): void {
  measureAtScrape(
    metrics,
    {
      scheduling_erasures_open: { help: 'Erasures of deleted customers that are still open' },
      scheduling_erasure_oldest_open_seconds: { help: 'Age of the oldest open erasure; 0 if there is none' },
    },
    async () => {
      const { open, seconds } = await kysely
        .selectFrom('erasure')
        .select((select) => [
          select.fn.countAll<number>().as('open'),
          sql<number>`coalesce(extract(epoch FROM now() - min(requested_at)), 0)::float8`.as('seconds'),
        ])
        .where('state', '<>', 'complete')
        .executeTakeFirstOrThrow();
      return {
        scheduling_erasures_open: [{ value: open }],
        scheduling_erasure_oldest_open_seconds: [{ value: seconds }],
      };
    },
  );
}
