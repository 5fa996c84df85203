import { setTimeout as delay } from 'node:timers/promises';
import { type ChildExit, describeExit } from '@scheduling/embedded';

/** A running process, as far as its supervision goes. */
export interface Running {
  pid: number;
  exited: Promise<ChildExit>;
}

export interface Supervision {
  name: string;
  /** Starts the process again, on the same ports. */
  restart: () => Promise<Running>;
  /** Hears every message for the person at the terminal. */
  say: (message: string) => void;
  /** Ends the supervision: from then on an end is not an accident. */
  signal: AbortSignal;
}

const firstDelayMs = 200;
const longestDelayMs = 5_000;
/** A process that ran this long is healthy: its next accident is a first one. */
const healthyAfterMs = 30_000;

/** Restarts a process whenever it ends: after 200 ms, then twice as long each time up to 5 s. Returns when the signal aborts. */
export async function supervise(running: Running, { name, restart, say, signal }: Supervision): Promise<void> {
  let current = running;
  let startedAt = performance.now();
  let delayMs = firstDelayMs;
  while (!signal.aborted) {
    const exit = await Promise.race([current.exited, aborted(signal)]);
    if (signal.aborted || exit === undefined) return;
    if (performance.now() - startedAt > healthyAfterMs) delayMs = firstDelayMs;
    say(`${name} (process ${current.pid}) ended with ${describeExit(exit)}; restarting it`);
    for (let replacement: Running | undefined; replacement === undefined; delayMs = Math.min(delayMs * 2, longestDelayMs)) {
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
