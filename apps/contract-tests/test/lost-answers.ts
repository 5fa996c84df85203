import { waitUntil } from '@scheduling/embedded';
import { eventually } from '@scheduling/testing';
import { Client } from 'pg';
import { expect, inject } from 'vitest';
import type { TestCrm } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';

type IsWaitedFor = () => Promise<boolean>;

/** Blocks every booking of an appointment, or of a slot of a timeslot, during the work. */
export async function withLockedRow(
  table: 'appointment' | 'timeslot',
  reference: string,
  work: (isWaitedFor: IsWaitedFor) => Promise<void>,
): Promise<void> {
  const holder = new Client({ connectionString: inject('stack').databases.calendar });
  await holder.connect();
  try {
    await holder.query('BEGIN');
    const { rows } = await holder.query<{ holder: number }>(
      `SELECT pg_backend_pid() AS holder FROM ${table} WHERE reference = $1 FOR UPDATE`,
      [reference],
    );
    await work(
      async () =>
        (
          await query('calendar', 'SELECT 1 FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))', [
            rows[0]!.holder,
          ])
        ).length > 0,
    );
    await holder.query('COMMIT');
  } finally {
    await holder.end();
  }
}

/** Sends a POST to a path of the CRM, and cuts the connection while it is waited for. */
export async function loseAnswer(
  { crmId, key }: TestCrm,
  path: string,
  body: unknown,
  { isWaitedFor, headers = {} }: { isWaitedFor: IsWaitedFor; headers?: Record<string, string> },
): Promise<void> {
  // It waits for two seconds. On a slow machine these may be over before the wait was detected; then it is sent again.
  await eventually(async () => {
    const givingUp = new AbortController();
    const lost = fetch(`${inject('stack').gateway}/crms/${crmId}${path}`, {
      method: 'POST',
      headers: { 'x-service-client-id': key, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: givingUp.signal,
    });
    lost.catch(() => undefined);
    await waitUntil(isWaitedFor, { what: 'the request to wait', timeoutMs: 1_500 });
    givingUp.abort();
    await expect(lost).rejects.toThrow('aborted');
  });
}
