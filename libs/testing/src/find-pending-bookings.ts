import { Client } from 'pg';

/** What somebody with an address is to confirm at calendar, the newest last: events name it to notification only. */
export async function findPendingBookings({ databaseUrl }: { databaseUrl: string }, email: string): Promise<string[]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string }>('SELECT id FROM pending_booking WHERE email = $1 ORDER BY id', [
      email,
    ]);
    return rows.map(({ id }) => id);
  } finally {
    await client.end();
  }
}
