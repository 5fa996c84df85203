import { DomainError } from '@scheduling/errors';
import { Client, type ClientConfig } from 'pg';

type Callback = (error: Error | null) => void;

interface Attempt {
  start: () => void;
  reject: Callback;
}

/** The clients of one pool. */
export interface CarefulClients {
  Client: typeof Client;
  /** Called when a connection was established, and cannot be used: others do not try for a moment, and fail like it. */
  refused(error: Error): void;
}

/** When clients began to connect, on the clock of `performance`. */
const startedMs = new WeakMap<object, number>();
/** How long others fail like a connection that was refused. */
const refusedMs = 200;

/** A later connection shows where an address leads now. */
export function connectedSince(client: object): number {
  return startedMs.get(client) ?? 0;
}

/**
 * After a connection could not be established, only one is tried at a time, and twice as many after
 * each that succeeds; those that wait for the last one fail with it. A server that has hung finds all the
 * connections that were asked for meanwhile, and handles each of them although nobody waits for it any more. If all who
 * have given up tried again at once, it might be busy with that for ever.
 *
 * @param most at the same time
 */
export function createCarefulClients(most: number): CarefulClients {
  let permitted = most;
  let inProgress = 0;
  const waiting: Attempt[] = [];
  let refusal: { error: Error; untilMs: number } | undefined;

  function begin(): void {
    if (refusal !== undefined && performance.now() < refusal.untilMs) {
      for (const { reject } of waiting.splice(0)) reject(refusal.error);
      return;
    }
    for (const { start } of waiting.splice(0, Math.max(0, permitted - inProgress))) {
      inProgress += 1;
      start();
    }
  }

  function end(error: Error | null): void {
    inProgress -= 1;
    permitted = error === null ? Math.min(most, permitted * 2) : 1;
    // The pool may at once want others.
    const sharing = error !== null && inProgress === 0 ? waiting.splice(0) : [];
    for (const { reject } of sharing) reject(error);
    begin();
  }

  const Careful = class extends Client {
    constructor(config?: string | ClientConfig) {
      super(config);
      const connect = this.connect.bind(this) as (callback: Callback) => void;
      const carefully = (callback: Callback): void => {
        const start = (): void => {
          startedMs.set(this, performance.now());
          connect((error) => {
            // Whatever the reason, it can be another one, or none, a moment later.
            const failure = error && new DomainError('database.unavailable', { cause: error });
            callback(failure);
            end(failure);
          });
        };
        waiting.push({ start, reject: callback });
        begin();
      };
      // As a pool calls it.
      this.connect = carefully as typeof this.connect;
    }
  };
  return {
    Client: Careful,
    refused: (error) => {
      permitted = 1;
      refusal = { error, untilMs: performance.now() + refusedMs };
    },
  };
}
