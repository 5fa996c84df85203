import type { Database } from '@scheduling/postgres';
import { type Logger, lowestId, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';
import { secretContext, type WebhookRow } from './webhook.ts';
import { forgetPreviousSecrets } from './forget-previous-secrets.ts';
import { openPreviousSecret } from './open-previous-secret.ts';
import type { Sealer } from './seal.ts';

const everyMs = 60 * 60 * 1_000;
const batchSize = 100;

/**
 * Seals secrets again that were sealed with another key than the first one, at the start and then every hour, so that
 * the others can be removed; and deletes previous secrets that no longer sign, before it, because each would skip what
 * the other has locked. A secret that cannot be opened is logged and left as it is.
 */
export function startResealing({
  database,
  sealer,
  logger,
}: {
  database: Database<WebhookSchema>;
  sealer: Sealer;
  logger: Logger;
}): AsyncDisposable {
  let position = beginning;
  return startLoop({
    name: 'the sealing of secrets with the current key',
    logger,
    everyMs,
    batch: batchSize,
    run: async (limit) => {
      if (position === beginning) {
        const forgotten = await forgetPreviousSecrets(database, limit);
        if (forgotten === limit) return forgotten;
      }
      const rows = await reseal(database, { sealer, logger }, position, limit);
      position = rows.length < limit ? beginning : rows.at(-1)!;
      return rows.length;
    },
  });
}

type WebhookId = Pick<WebhookRow, 'crmId' | 'id'>;

const beginning: WebhookId = { crmId: '', id: lowestId };

/** The webhooks behind a position that had to be sealed again. */
async function reseal(
  database: Database<WebhookSchema>,
  { sealer, logger }: { sealer: Sealer; logger: Logger },
  { crmId, id }: WebhookId,
  limit: number,
): Promise<WebhookId[]> {
  const isOld = sql<boolean>`NOT (starts_with(secret, ${sealer.prefix}) AND starts_with(coalesce(previous_secret, ${sealer.prefix}), ${sealer.prefix}))`;
  return database.transaction(async (tx) => {
    const rows = await tx
      .selectFrom('webhook')
      .selectAll()
      .where(isOld)
      .where(sql<boolean>`(crm_id, id) > (${crmId}, ${id}::uuid)`)
      .orderBy('crmId')
      .orderBy('id')
      .limit(limit)
      .forUpdate()
      .skipLocked()
      .execute();
    for (const row of rows) {
      const context = secretContext(row);
      try {
        const previous = openPreviousSecret(sealer, row, new Date());
        const sealed = {
          secret: sealer.seal(sealer.open(row.secret, context), context),
          previousSecret: previous === undefined ? null : sealer.seal(previous, context),
        };
        await tx.updateTable('webhook').set(sealed).where('crmId', '=', row.crmId).where('id', '=', row.id).execute();
      } catch (error) {
        logger.warn({ err: error, id: row.id }, 'the secret of a webhook cannot be opened');
      }
    }
    return rows;
  });
}
