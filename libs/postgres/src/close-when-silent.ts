import type { Client } from 'pg';

/**
 * Makes a connection end if a statement got no response within its `query_timeout`: the machine at the other end may be
 * gone without a word, which the operating system would notice after a quarter of an hour. pg rejects the statement by
 * itself, but would go on using the connection.
 */
export function closeWhenSilent(client: Client): void {
  const query = client.query.bind(client) as (...parameters: unknown[]) => unknown;
  const watched = (...parameters: unknown[]): unknown => {
    const result = query(...parameters);
    if (result instanceof Promise) {
      result.catch((error: unknown) => {
        if (isUnanswered(error)) void client.end();
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
