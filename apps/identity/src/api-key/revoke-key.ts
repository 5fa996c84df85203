import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent, recordAction } from '@scheduling/messaging';
import { type Expression, type ExpressionBuilder, sql, type SqlBool, type Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import type { ApiKeyRow } from './api-key.ts';

/**
 * Revokes a key permanently; the event makes the gateways drop it from their caches. Repeating it: no change, no event.
 * Rejects with `key.not_found`.
 */
export async function revokeKey({ database }: IdentityDependencies, prefix: string): Promise<ApiKeyRow> {
  return database.transaction(async (tx) => {
    const [revoked] = await revokeKeys(tx, (key) => key('prefix', '=', prefix));
    if (revoked !== undefined) {
      await recordAction(tx, 'key.revoke', revoked.crmId, prefix);
      return revoked;
    }
    return tx
      .selectFrom('apiKey')
      .selectAll()
      .where('prefix', '=', prefix)
      .executeTakeFirstOrThrow(() => new DomainError('key.not_found'));
  });
}

/** Revokes those of these keys that are not revoked yet, and returns them. */
export async function revokeKeys(
  tx: Transaction<IdentitySchema>,
  which: (key: ExpressionBuilder<IdentitySchema, 'apiKey'>) => Expression<SqlBool>,
): Promise<ApiKeyRow[]> {
  const revoked = await tx
    .updateTable('apiKey')
    .set({ revokedAt: sql<Date>`now()` })
    .where(which)
    .where('revokedAt', 'is', null)
    .returningAll()
    .execute();
  for (const { crmId, keyHash } of revoked) await appendEvent(tx, events.apiKeyRevoked, { crmId, keyHash });
  return revoked;
}
