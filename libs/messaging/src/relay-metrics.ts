import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import { Counter } from 'prom-client';
import type { MessagingSchema } from './schema.ts';

/** Counting stops here: a full outbox must not make the scrape slow. */
const maxCounted = 10_000;

/**
 * Counts published events, and measures those that are waiting. Returns the function that counts a published event by
 * its subject.
 */
export function measureRelay(db: Kysely<MessagingSchema>, metrics: Metrics): (subject: string) => void {
  measureAtScrape(
    metrics,
    {
      scheduling_outbox_unsent_events: {
        help: `Events committed but not yet published, across all replicas; capped at ${maxCounted}`,
      },
      scheduling_outbox_oldest_unsent_seconds: {
        help: 'Age of the oldest event committed but not yet published; 0 if there is none',
      },
      scheduling_outbox_refilling: { help: 'Whether events that the stream lost are being published again (1 or 0)' },
    },
    async () => {
      const { events, seconds, refilling } = await selectOutboxState(db).executeTakeFirstOrThrow();
      return {
        scheduling_outbox_unsent_events: [{ value: events }],
        scheduling_outbox_oldest_unsent_seconds: [{ value: seconds }],
        scheduling_outbox_refilling: [{ value: Number(refilling) }],
      };
    },
  );
  const published = new Counter({
    name: 'scheduling_events_published_total',
    help: 'Events acknowledged by JetStream, by subject; republished events count again',
    labelNames: ['subject'],
    registers: [metrics],
  });
  return (subject) => published.inc({ subject });
}

export interface OutboxState {
  /** Events that are committed and not yet published; at most {@link maxCounted}. */
  events: number;
  /** How long the oldest of them has been waiting; 0 if there is none. */
  seconds: number;
  /** Whether events that the stream lost are being published again. */
  refilling: boolean;
}

/** Uses the index on unsent events. */
export function selectOutboxState(
  db: Kysely<MessagingSchema>,
): SelectQueryBuilder<MessagingSchema, never, OutboxState> {
  return db
    .selectFrom((from) =>
      from
        .selectFrom('outbox')
        .select('createdAt')
        .where('sentAt', 'is', null)
        .orderBy('id')
        .limit(maxCounted)
        .as('unsent'),
    )
    .select((select) => [
      select.fn.countAll<number>().as('events'),
      sql<number>`coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8`.as('seconds'),
      sql<boolean>`EXISTS (SELECT FROM outbox_position WHERE refill_after IS NOT NULL)`.as('refilling'),
    ]);
}
