import { dueAfter } from '@scheduling/delivery';
import type { CrmEventType } from '@scheduling/events';
import type { Database } from '@scheduling/postgres';
import { type RawBuilder, sql, type Transaction, type UpdateObject } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import type { WebhookSchema } from '../db/schema.ts';
import type { PostResult } from '../endpoint/post.ts';
import type { EventJson } from '../feed/describe-events.ts';
import { isDelivered } from './decide-after-failure.ts';
import { type LeasedWebhook, webhookTable } from './webhook-table.ts';

/** What came of a lease. `position` is that of the last event that was delivered or left out. */
export type Result = { position: number; delivered: number } & (
  | { outcome: 'sent' }
  | { outcome: 'retry'; afterMs: number; reason: string }
  | { outcome: 'disable'; reason: string }
  /** Nothing was sent: not the fault of the endpoint. */
  | { outcome: 'postpone'; afterMs: number; reason: string }
  /** The webhook was changed or deleted, or another process took over. */
  | { outcome: 'lost' }
);

interface Attempt {
  event: EventJson;
  result: PostResult;
}

/** Whether this process still has the lease. */
export async function isHeld(
  { kysely }: Database<WebhookSchema>,
  { crmId, id, lease }: LeasedWebhook,
): Promise<boolean> {
  const row = await kysely
    .selectFrom('webhook')
    .select('id')
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('lease', '=', lease)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Records an attempt, and, if the event was delivered, the new position. False if the lease is lost: then somebody else
 * decides about the position.
 */
export async function recordAttempt(
  { kysely }: Database<WebhookSchema>,
  { crmId, id, lease }: LeasedWebhook,
  { position, ...attempt }: Attempt & { position: number },
): Promise<boolean> {
  const { rows } = await sql<{ isHeld: boolean }>`
    WITH webhook_now AS (
      SELECT crm_id, id, lease IS NOT DISTINCT FROM ${lease}::uuid AS is_held FROM webhook WHERE crm_id = ${crmId} AND id = ${id} FOR UPDATE
    ), attempt AS (
      ${insertAttempt(attempt)} FROM webhook_now
    ), moved AS (
      UPDATE webhook SET position = ${position}, failed_attempts = 0 FROM webhook_now
       WHERE webhook.crm_id = webhook_now.crm_id AND webhook.id = webhook_now.id AND is_held AND ${isDelivered(attempt.result)}
    )
    SELECT is_held FROM webhook_now`.execute(kysely);
  return rows[0]?.isHeld ?? false;
}

/** Records a test, unless the webhook was deleted meanwhile. It does not count as one that is being sent any more. */
export async function recordTest(
  { kysely }: Database<WebhookSchema>,
  { crmId, id }: Pick<LeasedWebhook, 'crmId' | 'id'>,
  attempt: Attempt,
): Promise<void> {
  await sql`
    WITH test AS (
      UPDATE webhook_test SET ended = true WHERE crm_id = ${crmId} AND event_id = ${attempt.event.id}
    )
    ${insertAttempt(attempt)} FROM webhook WHERE crm_id = ${crmId} AND id = ${id}`.execute(kysely);
}

/** The row from which it is selected names the webhook. */
function insertAttempt({ event, result }: Attempt): RawBuilder<unknown> {
  const [status, error] = 'status' in result ? [result.status, null] : [null, result.error];
  return sql`
    INSERT INTO webhook_attempt (crm_id, webhook_id, event_id, event_type, status, error, duration_ms)
    SELECT crm_id, id, ${event.id}, ${event.type}, ${status}::int, ${error}::text, ${result.durationMs}::int`;
}

/** Ends a lease, unless it is lost. */
export async function recordResult(
  database: Database<WebhookSchema>,
  webhook: LeasedWebhook,
  result: Result,
): Promise<void> {
  switch (result.outcome) {
    case 'lost':
      return;
    case 'sent':
      return database.transaction((tx) => endTurn(tx, webhook, result.position));
    case 'postpone':
      await changeHeld(database.kysely, webhook, {
        position: result.position,
        dueAt: dueAfter(result.afterMs, webhookTable),
      });
      return;
    case 'retry':
      await changeHeld(database.kysely, webhook, {
        position: result.position,
        dueAt: dueAfter(result.afterMs, webhookTable),
        // Every event that was delivered has set this to 0.
        failedAttempts: sql<number>`failed_attempts + 1`,
      });
      return;
    case 'disable':
      return database.transaction((tx) => disable(tx, webhook, result.position));
  }
}

/**
 * Whether events are left is decided with the counter locked: an event that is recorded later finds the webhook idle,
 * and makes it due.
 */
async function endTurn(tx: Transaction<WebhookSchema>, webhook: LeasedWebhook, position: number): Promise<void> {
  const { lastSequence } = await tx
    .selectFrom('eventCounter')
    .select('lastSequence')
    .where('crmId', '=', webhook.crmId)
    .forShare()
    .executeTakeFirstOrThrow();
  const state = position < lastSequence ? 'pending' : 'idle';
  await changeHeld(tx, webhook, { position, state, failedAttempts: 0, dueAt: sql<Date>`now()` });
}

async function disable(tx: Transaction<WebhookSchema>, webhook: LeasedWebhook, position: number): Promise<void> {
  const { crmId, id } = webhook;
  if (!(await changeHeld(tx, webhook, { position, state: 'disabled', failedAttempts: 0, dueAt: sql<Date>`now()` })))
    return;
  await tx
    .insertInto('incomingEvent')
    .values({
      crmId,
      id: randomUUIDv7(),
      type: 'webhook.disabled' satisfies CrmEventType,
      subjectId: id,
      version: 0,
      state: 'DISABLED',
      previousState: 'ENABLED',
      actor: 'service',
    })
    .execute();
}

/** Whether the lease was held. */
async function changeHeld(
  db: Database<WebhookSchema>['kysely'],
  { crmId, id, lease }: LeasedWebhook,
  changes: UpdateObject<WebhookSchema, 'webhook'>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook')
    .set({ lease: null, ...changes })
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .where('lease', '=', lease)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}
