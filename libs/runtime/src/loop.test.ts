import { afterEach, expect, it, vi } from 'vitest';
import { createLogger } from './logger.ts';
import { type Loop, type LoopOptions, startLoop } from './loop.ts';

const logger = createLogger({ service: 'loop-test', level: 'silent' });
const anHour = 3_600_000;
let stack = new AsyncDisposableStack();

afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

function loop(options: Partial<LoopOptions> & Pick<LoopOptions, 'run'>): Loop {
  return stack.use(startLoop({ name: 'the loop', logger, everyMs: anHour, ...options }));
}

it('runs immediately, and again immediately after each full round', async () => {
  let waiting = 25;
  const limits: number[] = [];
  loop({
    batch: 10,
    run: async (limit) => {
      limits.push(limit);
      const done = Math.min(limit, waiting);
      waiting -= done;
      return done;
    },
  });
  await vi.waitFor(() => expect(limits).toHaveLength(3));
  expect(waiting).toBe(0);
});

it('runs when woken, and once more if woken during a round', async () => {
  const rounds: PromiseWithResolvers<void>[] = [];
  const { wake } = loop({
    run: async () => {
      const round = Promise.withResolvers<void>();
      rounds.push(round);
      await round.promise;
      return 0;
    },
  });
  expect(rounds).toHaveLength(1);
  wake();
  wake();
  rounds[0]!.resolve();
  await vi.waitFor(() => expect(rounds).toHaveLength(2));
  rounds[1]!.resolve();
  // Both calls came before the second round began: no work is left.
  await new Promise(setImmediate);
  expect(rounds).toHaveLength(2);
  wake();
  await vi.waitFor(() => expect(rounds).toHaveLength(3));
  rounds[2]!.resolve();
});

it('gathers what comes in quick succession for one round', async () => {
  const gatherMs = 50;
  const startsMs: number[] = [];
  // A process that is suspended may run the function of a round long after its beginning, so the times count from
  // before the first one.
  const createdMs = performance.now();
  const { wake } = loop({
    gatherMs,
    run: async () => {
      startsMs.push(performance.now());
      return 0;
    },
  });
  while (startsMs.length < 4) {
    wake();
    await new Promise(setImmediate);
  }
  // Timers count whole milliseconds, and may fire a fraction of one early.
  startsMs.forEach((startMs, index) => expect(startMs - createdMs).toBeGreaterThanOrEqual(index * (gatherMs - 2)));
});

it('continues after a failure, with smaller batches until one succeeds', async () => {
  const limits: number[] = [];
  loop({
    batch: 100,
    run: async (limit) => {
      limits.push(limit);
      if (limit > 50) throw new Error('canceling statement due to statement timeout');
      return limits.length < 4 ? limit : 0;
    },
  });
  await vi.waitFor(() => expect(limits.slice(0, 2)).toEqual([100, 50]), { timeout: 10_000 });
  // The batch grows back, so that one failure does not slow it down permanently.
  await vi.waitFor(() => expect(limits.slice(2, 4)).toEqual([100, 50]), { timeout: 10_000 });
});

it('waits on disposal for the round in progress, whose signal is aborted', async () => {
  const round = Promise.withResolvers<number>();
  let seen: AbortSignal | undefined;
  const running = loop({
    run: (_limit, signal) => {
      seen = signal;
      return round.promise;
    },
  });
  let stopped = false;
  const stopping = running[Symbol.asyncDispose]().then(() => {
    stopped = true;
  });
  await new Promise(setImmediate);
  expect(stopped).toBe(false);
  expect(seen?.aborted).toBe(true);
  round.resolve(1);
  await stopping;
});
