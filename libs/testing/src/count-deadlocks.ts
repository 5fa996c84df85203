import { Client } from 'pg';
import { eventually } from './eventually.ts';

/**
 * The number of deadlocks in a database, once all its sessions have ended: each reports at its end at the latest, and
 * ending a pool does not wait for it.
 */
export async function countDeadlocks(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await eventually(async () => {
      const { rowCount } = await client.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      );
      if (rowCount !== 0) throw new Error(`${rowCount} sessions have not ended`);
    });
    const { rows } = await client.query<{ deadlocks: string }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    return Number(rows[0]!.deadlocks);
  } finally {
    await client.end();
  }
}
