import { DomainError } from '@scheduling/errors';
import type { WebhookDependencies } from '../dependencies.ts';
import type { WebhookKey } from './webhook.ts';

/** Deletes a webhook and its attempts. A request in progress is not recalled. Rejects with `webhook.not_found`. */
export async function deleteWebhook(
  { database }: WebhookDependencies,
  { crmId, webhookReference }: WebhookKey,
): Promise<void> {
  const { numDeletedRows } = await database.kysely
    .deleteFrom('webhook')
    .where('crmId', '=', crmId)
    .where('reference', '=', webhookReference)
    .executeTakeFirst();
  if (numDeletedRows === 0n) throw new DomainError('webhook.not_found');
}
