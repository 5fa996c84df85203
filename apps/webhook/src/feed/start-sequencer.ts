import { type Broker, retentionMs } from '@scheduling/events';
import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import type { WebhookSchema } from '../db/schema.ts';
import { sequenceEvents } from './sequence-events.ts';

export interface SequencerOptions {
  database: Database<WebhookSchema>;
  broker: Pick<Broker, 'connected' | 'onReconnect'>;
  logger: Logger;
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
 * Gives events their place in the feed, soon after they arrived. Safe with many replicas: one at a time does it. An event that waits for its predecessor comes
 * without it after a time, but not while, or shortly after, NATS, the database or this process stood still, because then the predecessor is only late. One
 * that comes later is appended all the same: nothing is left out.
 */
export function startSequencer({ database, broker, logger, waitSeconds = defaultWaitSeconds }: SequencerOptions): AsyncDisposable {
  let undisturbedSinceMs = performance.now();
  let lastRoundMs = undisturbedSinceMs;
  broker.onReconnect(() => (undisturbedSinceMs = performance.now()));
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
      const moved = await sequenceEvents(database, { limit, waitSeconds: isUndisturbed ? waitSeconds : longestWaitSeconds });
      lastRoundMs = performance.now();
      // Others may have waited for these.
      if (moved > 0) database.committed();
      return moved;
    },
  });
  database.onCommit(loop.wake);
  return loop;
}
