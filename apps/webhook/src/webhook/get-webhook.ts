import type { WebhookDependencies } from '../dependencies.ts';
import {
  describeWebhook,
  describeWebhooks,
  requireWebhook,
  selectWebhooks,
  type Webhook,
  type WebhookKey,
} from './webhook.ts';

/** Rejects with `webhook.not_found`. */
export async function getWebhook(dependencies: WebhookDependencies, key: WebhookKey): Promise<Webhook> {
  return describeWebhook(dependencies, await requireWebhook(dependencies.database.kysely, key));
}

/** All webhooks of a CRM, in the order of their creation. */
export async function listWebhooks(
  dependencies: WebhookDependencies,
  { crmId }: { crmId: string },
): Promise<Webhook[]> {
  const rows = await selectWebhooks(dependencies.database.kysely, crmId).orderBy('id').execute();
  return describeWebhooks(dependencies, crmId, rows);
}
