import { Client } from 'pg';

/** Users of identity confirm their addresses, without the mails that would ask for it. */
export async function confirmAddresses({ databaseUrl }: { databaseUrl: string }, emails: string[]): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query('UPDATE app_user SET email_verified_at = now() WHERE email = ANY ($1)', [emails]);
  } finally {
    await client.end();
  }
}
