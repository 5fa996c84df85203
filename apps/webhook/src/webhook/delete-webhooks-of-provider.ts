import type { WebhookDependencies } from '../dependencies.ts';

/** Deletes the webhooks that are for a provider alone, which was deleted, and their attempts. False if there are none. */
export async function deleteWebhooksOfProvider(
  { database }: Pick<WebhookDependencies, 'database'>,
  { crmId, providerId }: { crmId: string; providerId: string },
): Promise<boolean> {
  const { numDeletedRows } = await database.kysely
    .deleteFrom('webhook')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}
