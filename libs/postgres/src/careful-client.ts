import { Client, type ClientConfig } from 'pg';

type Callback = (error: Error | null) => void;

interface Attempt {
  start: () => void;
  reject: Callback;
}

/**
 * The clients of one pool. After a connection could not be established, only one is tried at a time, and twice as many
 * after each that succeeds; those that wait for the last one fail with it. A server that has hung finds all the
 * connections that were asked for meanwhile, and handles each of them although nobody waits for it any more. If all who
 * have given up tried again at once, it might be busy with that for ever.
 *
 * @param most at the same time
 */
export function createCarefulClient(most: number): typeof Client {
  let permitted = most;
  let inProgress = 0;
  const waiting: Attempt[] = [];

  function begin(): void {
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

  return class extends Client {
    constructor(config?: string | ClientConfig) {
      super(config);
      const connect = this.connect.bind(this) as (callback: Callback) => void;
      const carefully = (callback: Callback): void => {
        const start = (): void =>
          connect((error) => {
            callback(error);
            end(error);
          });
        waiting.push({ start, reject: callback });
        begin();
      };
      // As a pool calls it.
      this.connect = carefully as typeof this.connect;
    }
  };
}
