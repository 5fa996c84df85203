import { transactOnce } from '@scheduling/postgres';
import { sql } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import type { WebhookDependencies } from '../dependencies.ts';
import { newSecret } from './sign.ts';
import {
  describeWebhook,
  lockWebhook,
  openIfKept,
  requireWebhookById,
  secretContext,
  secretKept,
  type Webhook,
  type WebhookKey,
} from './webhook.ts';

/** How long the previous secret signs, too. */
const overlapHours = 24;

/**
 * Gives the webhook a new secret and returns it, unless this is the repetition of a request whose secret was replaced
 * since. For 24 hours events are signed with the previous one, too. Rejects with `webhook.not_found`.
 */
export async function rotateSecret(
  dependencies: WebhookDependencies,
  key: WebhookKey,
): Promise<{ webhook: Webhook; secret: string | undefined }> {
  const { database, sealer } = dependencies;
  const { crmId } = key;
  const { row, secretId } = await transactOnce(database, crmId, {
    work: async (tx) => {
      const { id, secret: previousSecret } = await lockWebhook(tx, key);
      const row = await tx
        .updateTable('webhook')
        .set({
          secret: sealer.seal(newSecret(), secretContext({ crmId, id })),
          secretId: randomUUIDv7(),
          previousSecret,
          previousSecretUntil: sql<Date>`now() + make_interval(hours => ${overlapHours})`,
        })
        .where('crmId', '=', crmId)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
      return { row, secretId: row.secretId };
    },
    keep: ({ row: made }) => ({ resourceIds: secretKept(made), created: false }),
    replay: async (tx, { resourceIds }) => ({
      row: await requireWebhookById(tx, crmId, resourceIds[0]!),
      secretId: resourceIds[1] ?? null,
    }),
  });
  return { webhook: await describeWebhook(dependencies, row), secret: openIfKept(sealer, row, secretId) };
}
