import type { Client } from 'pg';
import { isReadOnlyError } from './server-watch.ts';

/** A statement that takes longer may have been sent to a server that is no longer the one. */
const slowMs = 1_000;

/**
 * Watches the statements of a connection. It is closed if
 *
 * - a statement got no response within its `query_timeout`: the machine at the other end may be gone without a word,
 *   which the operating system would notice after a quarter of an hour. pg rejects the statement by itself, but would go
 *   on using the connection.
 * - its server has become read-only: the connections that replace it may lead to the one that is not.
 *
 * @param onSlow called each second for which a statement has been waiting for its response
 */
export function watchStatements(client: Client, onSlow: () => void): void {
  const query = client.query.bind(client) as (...parameters: unknown[]) => unknown;
  const watched = (...parameters: unknown[]): unknown => {
    const result = query(...parameters);
    if (result instanceof Promise) {
      const timer = setInterval(onSlow, slowMs).unref();
      const stop = (): void => clearInterval(timer);
      result.then(stop, (error: unknown) => {
        stop();
        // Before the caller hears of it, and returns the connection.
        if (isUnanswered(error) || isReadOnlyError(error)) void client.end();
      });
    }
    return result;
  };
  client.query = watched as typeof client.query;
}

/** pg sets no code on the error. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}
