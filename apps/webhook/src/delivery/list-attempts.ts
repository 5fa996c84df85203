import { collectFieldErrors } from '@scheduling/errors';
import { idCursor, readCursor } from '@scheduling/runtime';
import type { Selectable } from 'kysely';
import type { WebhookAttemptTable } from '../db/schema.ts';
import type { WebhookDependencies } from '../dependencies.ts';
import { requireWebhook, type WebhookKey } from '../webhook/webhook.ts';

export interface AttemptsQuery extends WebhookKey {
  /** From 1 to 1,000. */
  limit: number;
  cursor?: string | undefined;
}

export interface AttemptsPage {
  attempts: Selectable<WebhookAttemptTable>[];
  nextCursor: string | undefined;
}

/**
 * What was sent in the last 7 days, newest first. Rejects with `webhook.not_found`, or `webhook.invalid` for a cursor
 * that is none.
 */
export async function listAttempts({ database }: WebhookDependencies, query: AttemptsQuery): Promise<AttemptsPage> {
  const { cursor, limit } = query;
  const errors = collectFieldErrors();
  const after = readCursor(idCursor, cursor, errors);
  errors.throwIfAny('webhook.invalid');
  const { crmId, id: webhookId } = await requireWebhook(database.kysely, query);
  const found = await database.kysely
    .selectFrom('webhookAttempt')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('webhookId', '=', webhookId)
    .$if(after !== undefined, (select) => select.where('id', '<', after!))
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute();
  const attempts = found.slice(0, limit);
  return { attempts, nextCursor: found.length > limit ? idCursor.encode(attempts.at(-1)!.id) : undefined };
}
