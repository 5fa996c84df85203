import { Client, type ClientConfig } from 'pg';

/** Uses one connection to a database. */
export async function withClient<T>(
  connectionString: string,
  use: (client: Client) => Promise<T>,
  options: Pick<ClientConfig, 'connectionTimeoutMillis'> = {},
): Promise<T> {
  const client = new Client({ connectionString, ...options });
  // An idle client whose server goes away emits an event; the query or `end()` reports the error as well.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
