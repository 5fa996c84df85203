import { type Broker, retentionMs } from '@scheduling/events';
import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import type { WebhookSchema } from '../db/schema.ts';
import { type Gap, sequenceEvents } from './sequence-events.ts';

export interface SequencerOptions {
  database: Database<WebhookSchema>;
  broker: Pick<Broker, 'connected' | 'onReconnect'>;
  logger: Logger;
  /** Called with the number of events that did not arrive in time, for metrics. */
  onMissing: (count: number) => void;
  /** How long an event waits for its predecessor, in seconds; 60 by default. */
  waitSeconds?: number;
}

const defaultWaitSeconds = 60;
/** What is missing after that does not come any more. */
const longestWaitSeconds = retentionMs / 1_000;

const everyMs = 1_000;
const gatherMs = 20;
const batchSize = 500;
/** Rounds follow each other more quickly, unless this process or the database stood still. */
const longestRoundMs = 5_000;

/**
 * Gives events their place in the feed, soon after they arrived. Safe with many replicas: one at a time does it. An
 * event that waits for its predecessor comes without it after a time, but not while, or shortly after, NATS, the
 * database or this process stood still, because then the predecessor is only late. One that comes later is appended all
 * the same: nothing is left out.
 */
export function startSequencer({
  database,
  broker,
  logger,
  onMissing,
  waitSeconds = defaultWaitSeconds,
}: SequencerOptions): AsyncDisposable {
  let undisturbedSinceMs = performance.now();
  let lastRoundMs = undisturbedSinceMs;
  broker.onReconnect(() => (undisturbedSinceMs = performance.now()));
  const onGaps = (gaps: Gap[]): void => {
    for (const { series, first, last } of gaps) {
      logger.warn({ series, first, last }, 'events did not arrive in time: the feed continues without them');
      onMissing(last - first + 1);
    }
  };
  const loop = startLoop({
    name: 'the ordering of events',
    logger,
    everyMs,
    gatherMs,
    batch: batchSize,
    run: async (limit) => {
      const nowMs = performance.now();
      if (!broker.connected || nowMs - lastRoundMs > longestRoundMs) undisturbedSinceMs = nowMs;
      const isUndisturbed = nowMs - undisturbedSinceMs >= waitSeconds * 1_000;
      const moved = await sequenceEvents(database, {
        limit,
        waitSeconds: isUndisturbed ? waitSeconds : longestWaitSeconds,
        onGaps,
      });
      lastRoundMs = performance.now();
      // Others may have waited for these.
      if (moved > 0) database.committed();
      return moved;
    },
  });
  database.onCommit(loop.wake);
  return loop;
}
