import { transactOnce } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { WebhookDependencies } from '../dependencies.ts';
import { newSecret } from '../secret/sign.ts';
import { describeWebhook, lockWebhook, requireWebhookById, secretContext, type Webhook, type WebhookKey } from './webhook.ts';

/** How long the previous secret signs, too. */
const overlapHours = 24;

/** Gives the webhook a new secret and returns it. For 24 hours events are signed with the previous one, too. Rejects with `webhook.not_found`. */
export async function rotateSecret(dependencies: WebhookDependencies, key: WebhookKey): Promise<{ webhook: Webhook; secret: string }> {
  const { database, sealer } = dependencies;
  const { crmId } = key;
  const row = await transactOnce(database, crmId, {
    work: async (tx) => {
      const { id, secret: previousSecret } = await lockWebhook(tx, key);
      return tx
        .updateTable('webhook')
        .set({
          secret: sealer.seal(newSecret(), secretContext({ crmId, id })),
          previousSecret,
          previousSecretUntil: sql<Date>`now() + make_interval(hours => ${overlapHours})`,
        })
        .where('crmId', '=', crmId)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
    },
    keep: ({ id }) => ({ resourceIds: [id], created: false }),
    replay: (tx, { resourceIds }) => requireWebhookById(tx, crmId, resourceIds[0]!),
  });
  return { webhook: await describeWebhook(dependencies, row), secret: sealer.open(row.secret, secretContext(row)) };
}
