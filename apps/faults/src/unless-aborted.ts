import { once } from 'node:events';

/** Rejects when the signal aborts, and lets what is running end with its system. */
export async function unlessAborted<Result>(running: Promise<Result>, signal: AbortSignal): Promise<Result> {
  // If it loses the race, nothing handles its rejection.
  running.catch(() => undefined);
  const aborted = once(signal, 'abort').then(() => Promise.reject(signal.reason as Error));
  return Promise.race([running, aborted]);
}
