export interface Interruption {
  /** Aborts at the first SIGINT, SIGTERM or SIGHUP, and when the parent of this process is gone. */
  stop: AbortSignal;
  /** Aborts at the second one: somebody does not want to wait. */
  kill: AbortSignal;
}

/** Why a command ends that was asked to. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

const parentPollMs = 300;

/** Listens to signals from now on. */
export function listenForInterruption(): Interruption {
  const stop = new AbortController();
  const kill = new AbortController();
  const interrupt = (): void => (stop.signal.aborted ? kill : stop).abort(new Interrupted('interrupted'));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);

  // A parent that is killed with SIGKILL passes no signal on; its children get another parent.
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    if (!stop.signal.aborted) interrupt();
  }, parentPollMs).unref();

  return { stop: stop.signal, kill: kill.signal };
}
