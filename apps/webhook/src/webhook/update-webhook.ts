import { sql } from 'kysely';
import type { WebhookDependencies } from '../dependencies.ts';
import { findPosition } from '../feed/find-position.ts';
import { postLimitMs } from '../endpoint/post.ts';
import { readSettings, type WebhookSettings } from './read-settings.ts';
import { describeWebhook, lockWebhook, type Webhook, type WebhookKey } from './webhook.ts';

export interface WebhookChange extends WebhookKey, WebhookSettings {
  isEnabled?: boolean | undefined;
  /** As in the feed: the position from which it continues. */
  after?: string | undefined;
}

/**
 * Changes what is given. The next event is then sent as soon as a request in progress has ended: the webhook is tried
 * again from the first attempt on. Rejects with `webhook.invalid`, `webhook.not_found`, `provider.not_found`,
 * `events.invalid` or `events.expired`.
 */
export async function updateWebhook(dependencies: WebhookDependencies, change: WebhookChange): Promise<Webhook> {
  const { crmId, isEnabled, after } = change;
  const settings = await readSettings(dependencies, crmId, change);
  const position = after === undefined ? undefined : await findPosition(dependencies.database, { crmId, after });
  const row = await dependencies.database.transaction(async (tx) => {
    const { id, lease, state, failedAttempts } = await lockWebhook(tx, change);
    const willBeEnabled = isEnabled ?? state !== 'disabled';
    return tx
      .updateTable('webhook')
      .set({
        ...settings,
        ...(position && { position: position.sequence }),
        state: willBeEnabled ? 'pending' : 'disabled',
        failedAttempts: 0,
        // The process that has the lease stops when it learns that it has lost it.
        lease: null,
        dueAt: dueAfterRequest({ isLeased: lease !== null, failedAttempts }),
      })
      .where('crmId', '=', crmId)
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirstOrThrow();
  });
  return describeWebhook(dependencies, row);
}

/**
 * When no request to the endpoint can be in progress any more: that of the process that had the lease, or had it until
 * the previous change.
 */
function dueAfterRequest({ isLeased, failedAttempts }: { isLeased: boolean; failedAttempts: number }) {
  if (isLeased) return sql<Date>`now() + make_interval(secs => ${postLimitMs / 1_000})`;
  return failedAttempts > 0 ? sql<Date>`now()` : sql<Date>`greatest(now(), due_at)`;
}
