import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from './logger.ts';

export interface LoopOptions {
  /** What the loop does, as log lines name it: `the outbox relay`. */
  name: string;
  logger: Logger;
  /** The pause after a round that left no work behind, in milliseconds; {@link Loop.wake} cuts it short. A function is asked after each round. */
  everyMs: number | (() => number);
  /** The most that one round does; 1 when not given. */
  batch?: number;
  /** Does at most `limit` pieces of work and returns how many it did. As many as the limit: more may wait, so the next round follows at once. */
  run: (limit: number, signal: AbortSignal) => Promise<number>;
}

/** Disposal aborts the signal and waits for the round under way. */
export interface Loop extends AsyncDisposable {
  /** There is work: the next round starts at once. A call during a round counts for the one after it. */
  wake: () => void;
}

const firstRetryMs = 1_000;
const longestRetryMs = 30_000;

/**
 * Repeats a bounded piece of background work until disposed of, the first time at once. After a failure it waits 1 s, then twice as long each time
 * up to `everyMs` or 30 s, whichever is less, and takes on half as much: a batch too large for the time that a statement may take gets
 * through in smaller ones. A failure never ends the loop.
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

async function repeat({ name, logger, everyMs, batch = 1, run }: LoopOptions, alarm: Alarm, signal: AbortSignal): Promise<void> {
  const pauseMs = typeof everyMs === 'number' ? () => everyMs : everyMs;
  let limit = batch;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const done = await run(limit, signal);
      if (failures > 0) logger.info({ failures }, `${name} is working again`);
      failures = 0;
      const isFull = done >= limit;
      limit = Math.min(batch, limit * 2);
      if (!isFull) await alarm.wait(pauseMs());
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
  /** Remembered when nobody waits. */
  ring: () => void;
  /** Until the next ring, or for this many milliseconds. */
  wait: (timeoutMs: number) => Promise<void>;
}

function createAlarm(): Alarm {
  let rung = Promise.withResolvers<void>();
  return {
    ring: () => rung.resolve(),
    wait: async (timeoutMs) => {
      const timeout = new AbortController();
      await Promise.race([rung.promise, delay(timeoutMs, undefined, { signal: timeout.signal }).catch(() => undefined)]);
      timeout.abort();
      rung = Promise.withResolvers();
    },
  };
}
