import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from './logger.ts';

export interface LoopOptions {
  /** What the loop does, for log lines: `the outbox relay`. */
  name: string;
  logger: Logger;
  /**
   * The pause after a round that left no work, in milliseconds; {@link Loop.wake} ends it early. A function is called
   * after each round.
   */
  everyMs: number | (() => number);
  /**
   * The least time from the beginning of a round to that of the next one that {@link Loop.wake} starts, in
   * milliseconds: work that comes in quick succession is done together. 0 by default.
   */
  gatherMs?: number;
  /** The maximum of one round; 1 by default. */
  batch?: number;
  /**
   * Does at most `limit` pieces of work and returns how many it did. If it reaches the limit, there may be more, so the
   * next round follows immediately.
   */
  run: (limit: number, signal: AbortSignal) => Promise<number>;
}

/** Disposal aborts the signal and waits for the round in progress. */
export interface Loop extends AsyncDisposable {
  /**
   * Signals new work: the next round starts immediately, or after `gatherMs`. A call during a round counts for the next
   * one.
   */
  wake: () => void;
}

const firstRetryMs = 1_000;
const longestRetryMs = 30_000;

/**
 * Repeats a bounded piece of background work until disposed of, starting immediately. After a failure it waits 1 s,
 * doubling each time up to `everyMs` or 30 s, whichever is less, and halves its batch: work that is too large for the
 * statement timeout gets done in smaller batches. A failure never ends the loop.
 */
export function startLoop(options: LoopOptions): Loop {
  const stopping = new AbortController();
  const alarm = createAlarm();
  const running = repeat(options, alarm, stopping.signal);
  return {
    wake: alarm.ring,
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      alarm.ring();
      await running;
    },
  };
}

async function repeat(
  { name, logger, everyMs, gatherMs = 0, batch = 1, run }: LoopOptions,
  alarm: Alarm,
  signal: AbortSignal,
): Promise<void> {
  const pauseMs = typeof everyMs === 'number' ? () => everyMs : everyMs;
  let limit = batch;
  let failures = 0;
  while (!signal.aborted) {
    const beganMs = performance.now();
    try {
      const done = await run(limit, signal);
      if (failures > 0) logger.info({ failures }, `${name} is working again`);
      failures = 0;
      const isFull = done >= limit;
      limit = Math.min(batch, limit * 2);
      if (isFull) continue;
      await alarm.wait(pauseMs());
      const earlyMs = gatherMs - (performance.now() - beganMs);
      if (earlyMs > 0) await delay(earlyMs, undefined, { signal });
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      limit = Math.max(1, Math.floor(limit / 2));
      const retryMs = retryDelayMs(failures, pauseMs());
      logger.warn({ err: error, failures, retryMs }, `${name} failed, retrying`);
      await delay(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

function retryDelayMs(failures: number, pauseMs: number): number {
  return Math.min(firstRetryMs * 2 ** Math.min(failures - 1, 10), longestRetryMs, Math.max(pauseMs, firstRetryMs));
}

interface Alarm {
  /** Remembered if nothing is waiting. */
  ring: () => void;
  /** Waits for the next ring, or for this many milliseconds. */
  wait: (timeoutMs: number) => Promise<void>;
}

function createAlarm(): Alarm {
  let rung = Promise.withResolvers<void>();
  return {
    ring: () => rung.resolve(),
    wait: async (timeoutMs) => {
      const timer = setTimeout(rung.resolve, timeoutMs);
      await rung.promise;
      clearTimeout(timer);
      rung = Promise.withResolvers();
    },
  };
}
