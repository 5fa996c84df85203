import type { ClientBase } from 'pg';

/** A commit that is written and replicated as any other, and leaves no row. A standby refuses it. */
export async function commitNothing(client: Pick<ClientBase, 'query'>): Promise<void> {
  await client.query(`SELECT pg_logical_emit_message(true, 'scheduling', '')`);
}
