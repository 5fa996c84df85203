import type { JetStreamManager } from '@nats-io/jetstream';
import { type Broker, isConsumerMissing, streamName } from '@scheduling/events';
import { measureAtScrape, type Metrics, type Sample } from '@scheduling/runtime';
import type { Kysely } from 'kysely';
import { Counter } from 'prom-client';
import type { MessagingSchema } from './schema.ts';

const consumptions = ['processed', 'repeated', 'waiting', 'failed', 'dead_letter'] as const;
/**
 * The outcome of a delivery: processed, already processed before, retried because a dependency is unavailable or
 * because processing failed, or a dead letter.
 */
export type Consumption = (typeof consumptions)[number];

const natsTimeoutMs = 1_000;
/** Counting stops here. */
const maxCounted = 10_000;

export interface ConsumerMetricsOptions {
  /** The names of the service's durable consumers. */
  consumers: string[];
  db: Kysely<MessagingSchema>;
  broker: Broker;
  metrics: Metrics;
}

/**
 * Counts consumed events, and measures the backlog and the dead letters. Returns the function that counts a delivered
 * event.
 */
export function measureConsumers(options: ConsumerMetricsOptions): (consumer: string, outcome: Consumption) => void {
  const { metrics } = options;
  measureLag(options);
  measureDeadLetters(options);
  const consumed = new Counter({
    name: 'scheduling_events_consumed_total',
    help: 'Event deliveries by consumer and outcome: processed, repeated, waiting (for a dependency), failed, dead_letter',
    labelNames: ['consumer', 'outcome'],
    registers: [metrics],
  });
  // Set from the start, so that the first event of a kind is seen as an increase.
  for (const consumer of options.consumers) for (const outcome of consumptions) consumed.inc({ consumer, outcome }, 0);
  return (consumer, outcome) => consumed.inc({ consumer, outcome });
}

function measureLag({ consumers, broker, metrics }: ConsumerMetricsOptions): void {
  const help = 'Events waiting for a consumer or being processed, across all replicas of the service';
  measureAtScrape(metrics, { scheduling_consumer_lag_events: { help, labelNames: ['consumer'] } }, async () => {
    if (!broker.connected) throw new Error('NATS is away');
    const { manager } = await broker.jetStream(AbortSignal.timeout(natsTimeoutMs));
    const samples = await Promise.all(consumers.map((consumer) => sampleLag(manager, consumer)));
    return { scheduling_consumer_lag_events: samples.filter((sample) => sample !== undefined) };
  });
}

/**
 * Undefined while the consumer does not exist: zero would say that it has processed everything. The service creates it
 * as soon as it can.
 */
async function sampleLag(manager: JetStreamManager, consumer: string): Promise<Sample | undefined> {
  try {
    const { num_pending: pending, num_ack_pending: unacknowledged } = await manager.consumers.info(
      streamName,
      consumer,
    );
    return { labels: { consumer }, value: pending + unacknowledged };
  } catch (error) {
    if (isConsumerMissing(error)) return undefined;
    throw error;
  }
}

function measureDeadLetters({ db, metrics }: ConsumerMetricsOptions): void {
  const help = `Dead letters of this service; capped at ${maxCounted}`;
  measureAtScrape(metrics, { scheduling_dead_letters: { help } }, async () => {
    const { count } = await db
      .selectFrom((from) => from.selectFrom('deadLetter').select('eventId').limit(maxCounted).as('some'))
      .select((select) => select.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return { scheduling_dead_letters: [{ value: count }] };
  });
}
