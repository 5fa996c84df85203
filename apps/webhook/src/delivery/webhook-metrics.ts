import type { Database } from '@scheduling/postgres';
import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { sql } from 'kysely';
import { Counter } from 'prom-client';
import type { WebhookSchema } from '../db/schema.ts';
import type { Result } from './record-result.ts';

/** `retrying`: the next event has failed before. */
const states = ['delivering', 'retrying', 'disabled'] as const;
const outcomes = ['sent', 'retry', 'disable', 'postpone', 'lost'] as const satisfies Result['outcome'][];

/** Measures how far the webhooks are behind the feed, and returns a function that counts the result of a turn. */
export function registerWebhookMetrics(metrics: Metrics, database: Database<WebhookSchema>): (result: Result) => void {
  measureAtScrape(
    metrics,
    {
      scheduling_webhooks: {
        help: 'Webhooks by state: delivering, retrying, disabled; across all replicas',
        labelNames: ['state'],
      },
      scheduling_webhook_lag_seconds: {
        help: 'How long the oldest event that was not delivered has been in the feed, for the webhook of this state that is furthest behind; 0 if none is behind',
        labelNames: ['state'],
      },
    },
    async () => {
      const webhooks = await readWebhooksByState(database);
      return {
        scheduling_webhooks: webhooks.map(({ state, count }) => ({ labels: { state }, value: count })),
        scheduling_webhook_lag_seconds: webhooks.map(({ state, lagSeconds }) => ({
          labels: { state },
          value: lagSeconds,
        })),
      };
    },
  );
  const turns = new Counter({
    name: 'scheduling_webhook_turns_total',
    help: 'Turns of webhooks by outcome: sent (all events of the turn), retry, disable, postpone (not the fault of the endpoint), lost (changed meanwhile)',
    labelNames: ['outcome'],
    registers: [metrics],
  });
  const delivered = new Counter({
    name: 'scheduling_webhook_events_delivered_total',
    help: 'Events that an endpoint has accepted',
    registers: [metrics],
  });
  for (const outcome of outcomes) turns.inc({ outcome }, 0);
  return (result) => {
    turns.inc({ outcome: result.outcome });
    delivered.inc(result.delivered);
  };
}

export interface WebhooksInState {
  state: (typeof states)[number];
  count: number;
  /** How long the next event of the one that is furthest behind has been in the feed. */
  lagSeconds: number;
}

/** Every state, also those in which there are none. */
export async function readWebhooksByState({ kysely }: Database<WebhookSchema>): Promise<WebhooksInState[]> {
  const { rows } = await sql<WebhooksInState>`
    SELECT CASE WHEN state = 'disabled' THEN 'disabled' WHEN failed_attempts > 0 THEN 'retrying' ELSE 'delivering' END AS state,
           count(*) AS count, coalesce(max(extract(epoch FROM now() - recorded_at)), 0)::float8 AS lag_seconds
      FROM webhook LEFT JOIN LATERAL (
        SELECT recorded_at FROM event WHERE event.crm_id = webhook.crm_id AND sequence > position ORDER BY sequence LIMIT 1
      ) AS next_event ON true
     GROUP BY 1`.execute(kysely);
  return states.map((state) => rows.find((row) => row.state === state) ?? { state, count: 0, lagSeconds: 0 });
}
