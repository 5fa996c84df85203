import { Client, type ClientConfig } from 'pg';

/** Uses a connection that belongs to no pool: a pool may be full, or refuse what is to be examined. */
export async function withOwnConnection<Result>(
  config: ClientConfig,
  use: (client: Client) => Promise<Result>,
): Promise<Result> {
  const client = new Client(config);
  // A lost connection also emits an event.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    // Not awaited: ending a connection that was never established does not complete.
    void client.end();
  }
}

/** For a connection with which an operator's question about a database is answered, in less time than a caller waits. */
export function inspection(url: string, queryMs = 300): ClientConfig {
  return {
    connectionString: url,
    application_name: 'inspection',
    connectionTimeoutMillis: 700,
    query_timeout: queryMs,
    // A statement that nobody waits for any more does not wait for a lock either.
    lock_timeout: queryMs + 200,
  };
}
