import { DomainError } from '@scheduling/errors';
import { type Broker, retentionMs } from '@scheduling/events';
import { type Database, isUnavailable } from '@scheduling/postgres';
import { createBatcher, type Logger, startLoop } from '@scheduling/runtime';
import { setTimeout as delay } from 'node:timers/promises';
import type { WebhookSchema } from '../db/schema.ts';
import { type IncomingEvent, recordEvents } from './record-events.ts';
import { type Gap, sequenceEvents } from './sequence-events.ts';

export interface FeedOptions {
  database: Database<WebhookSchema>;
  broker: Pick<Broker, 'connected' | 'onReconnect'>;
  logger: Logger;
  /** Called with the number of events that did not arrive in time, for metrics. */
  onMissing: (count: number) => void;
  /** How long an event waits for its predecessor, in seconds; 60 by default. */
  waitSeconds?: number;
}

export interface Feed extends AsyncDisposable {
  /**
   * Records an event of another service: it gets its place in the feed, or waits for its predecessors. Events that
   * arrive at about the same time are recorded together. False if it had been recorded before. Fails as unavailable once
   * disposal has begun.
   */
  record: (event: IncomingEvent) => Promise<boolean>;
}

const defaultWaitSeconds = 60;
/** What is missing after that does not come any more. */
const longestWaitSeconds = retentionMs / 1_000;

const everyMs = 1_000;
const gatherMs = 20;
const batchSize = 500;
/** Rounds follow each other more quickly, unless this process or the database stood still. */
const longestRoundMs = 5_000;
/** Few enough that requests, which share the processor and the disk, do not wait noticeably. */
const recordedTogether = 50;
/** No longer than this, however long the database took, which may have stood still. */
const longestPauseMs = 100;

/**
 * Gives events their place in the feed. Safe with many replicas. One that waits for its predecessor comes without it
 * after a time, but not while, or shortly after, NATS, the database or this process stood still, because then the
 * predecessor is only late. One that comes later is appended all the same: nothing is left out.
 */
export function startFeed({
  database,
  broker,
  logger,
  onMissing,
  waitSeconds = defaultWaitSeconds,
}: FeedOptions): Feed {
  let undisturbedSinceMs = performance.now();
  let lastRoundMs = undisturbedSinceMs;
  broker.onReconnect(() => (undisturbedSinceMs = performance.now()));
  const onGaps = (gaps: Gap[]): void => {
    for (const { series, first, last } of gaps) {
      logger.warn({ series, first, last }, 'events did not arrive in time: the feed continues without them');
      onMissing(last - first + 1);
    }
  };
  const currentWaitSeconds = (): number => {
    const nowMs = performance.now();
    if (!broker.connected || nowMs - lastRoundMs > longestRoundMs) undisturbedSinceMs = nowMs;
    return nowMs - undisturbedSinceMs >= waitSeconds * 1_000 ? waitSeconds : longestWaitSeconds;
  };
  const loop = startLoop({
    name: 'the ordering of events',
    logger,
    everyMs,
    gatherMs,
    batch: batchSize,
    run: async (limit) => {
      const moved = await sequenceEvents(database, { limit, waitSeconds: currentWaitSeconds(), onGaps });
      lastRoundMs = performance.now();
      if (moved > 0) {
        database.committed();
        // Others may have waited for these.
        loop.wake();
      }
      return moved;
    },
  });
  let isStopping = false;
  const record = createBatcher<IncomingEvent, boolean>(
    async (events) => {
      if (isStopping) throw new DomainError('service.unavailable');
      const beganMs = performance.now();
      const { repeated, hasWaiting } = await recordEvents(database, events, currentWaitSeconds() * 1_000);
      database.committed();
      if (hasWaiting) loop.wake();
      // While more events are waiting, requests have half of the time.
      if (events.length === recordedTogether) await delay(Math.min(performance.now() - beganMs, longestPauseMs));
      return events.map(({ id }) => !repeated.includes(id));
    },
    { maxBatch: recordedTogether, failsAll: isUnavailable },
  );
  return {
    record,
    [Symbol.asyncDispose]: () => {
      isStopping = true;
      return loop[Symbol.asyncDispose]();
    },
  };
}
