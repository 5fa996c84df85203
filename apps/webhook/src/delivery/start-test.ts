import { DomainError } from '@scheduling/errors';
import { sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import type { WebhookSchema } from '../db/schema.ts';

/** Of one CRM, in all processes, because an endpoint may take 10 s. */
const maxRunning = 5;
const maxPerMinute = 30;

/** A test that has not ended after this is one of a process that has. */
const longestTest = sql`interval '15 seconds'`;
const isRunning = sql<boolean>`NOT ended AND started_at > now() - ${longestTest}`;

interface Use {
  /** Until one more is permitted, if all that run take as long as they may; null: at once. */
  waitSeconds: number | null;
}

/**
 * Counts a test for the limits of its CRM. Returns the id of its event, and the time. Rejects with
 * `webhook.tests_limited`.
 */
export async function startTest(
  tx: Transaction<WebhookSchema>,
  crmId: string,
): Promise<{ eventId: string; sentAt: Date }> {
  // The tests are counted below.
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`webhook tests ${crmId}`}, 0))`.execute(tx);
  await tx
    .deleteFrom('webhookTest')
    .where('crmId', '=', crmId)
    .where('startedAt', '<=', sql<Date>`now() - interval '1 minute'`)
    .execute();
  const { rows } = await sql<Use>`
    SELECT ceil(extract(epoch FROM greatest(
             CASE WHEN count(*) FILTER (WHERE ${isRunning}) >= ${maxRunning} THEN min(started_at) FILTER (WHERE ${isRunning}) + ${longestTest} END,
             CASE WHEN count(*) >= ${maxPerMinute} THEN min(started_at) + interval '1 minute' END) - now()))::integer AS wait_seconds
      FROM webhook_test
     WHERE crm_id = ${crmId}`.execute(tx);
  const { waitSeconds } = rows[0]!;
  if (waitSeconds !== null)
    throw new DomainError('webhook.tests_limited', { retryAfterSeconds: Math.max(1, waitSeconds) });
  const { eventId, startedAt } = await tx
    .insertInto('webhookTest')
    .values({ crmId, eventId: randomUUIDv7() })
    .returning(['eventId', 'startedAt'])
    .executeTakeFirstOrThrow();
  return { eventId, sentAt: startedAt };
}
