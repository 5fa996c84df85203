import { setTimeout as delay } from 'node:timers/promises';
import { type ChildExit, describeExit } from '@scheduling/embedded';

/** The parts of a running process that supervision needs. */
export interface Running {
  pid: number;
  exited: Promise<ChildExit>;
}

export interface Supervision {
  name: string;
  /** Starts the process again, on the same ports. */
  restart: () => Promise<Running>;
  /** Called with every message for the user. */
  say: (message: string) => void;
  /** Ends the supervision: after that, the end of a process is not a failure. */
  signal: AbortSignal;
}

const firstDelayMs = 200;
const longestDelayMs = 5_000;
/** A process that ran this long counts as healthy: its next failure is treated as the first one. */
const healthyAfterMs = 30_000;

/**
 * Restarts a process whenever it ends: after 200 ms, with the delay doubling up to 5 s. Returns when the signal aborts.
 */
export async function supervise(running: Running, { name, restart, say, signal }: Supervision): Promise<void> {
  let current = running;
  let startedAt = performance.now();
  let delayMs = firstDelayMs;
  while (!signal.aborted) {
    const exit = await Promise.race([current.exited, aborted(signal)]);
    if (signal.aborted || exit === undefined) return;
    if (performance.now() - startedAt > healthyAfterMs) delayMs = firstDelayMs;
    say(`${name} (process ${current.pid}) ended with ${describeExit(exit)}; restarting it`);
    for (
      let replacement: Running | undefined;
      replacement === undefined;
      delayMs = Math.min(delayMs * 2, longestDelayMs)
    ) {
      await delay(delayMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      startedAt = performance.now();
      replacement = await restart().catch((error: unknown) => {
        if (!signal.aborted) say(`${name} failed to start: ${error instanceof Error ? error.message : String(error)}`);
        return undefined;
      });
      if (replacement) current = replacement;
    }
    if (!signal.aborted) say(`${name} is running again (process ${current.pid})`);
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
