export interface Interruption {
  /** Aborts at the first SIGINT, SIGTERM or SIGHUP, or when the parent of this process is gone. */
  stop: AbortSignal;
  /** Aborts at the second signal: the user does not want to wait. */
  kill: AbortSignal;
}

/** Why a command ends after an interruption. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

const parentPollMs = 1_000;

/** Starts listening for signals. */
export function listenForInterruption(): Interruption {
  const stop = new AbortController();
  const kill = new AbortController();
  const interrupt = (): void => (stop.signal.aborted ? kill : stop).abort(new Interrupted('interrupted'));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);

  // A parent killed with SIGKILL passes on no signal; its children get a new parent.
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    if (!stop.signal.aborted) interrupt();
  }, parentPollMs).unref();

  return { stop: stop.signal, kill: kill.signal };
}
