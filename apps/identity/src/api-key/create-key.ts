import { DomainError } from '@scheduling/errors';
import { recordAction } from '@scheduling/messaging';
import { sql } from 'kysely';
import { requireCrm } from '../crm/get-crm.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { type ApiKeyRow, generateKey } from './api-key.ts';

/**
 * Issues a key; only its hash is stored. Rejects with `crm.not_found`, or `key.invalid_expiry` unless the expiry is in
 * the future.
 */
export async function createKey(
  { database }: IdentityDependencies,
  { crmId, scope, expiresAt }: { crmId: string; scope: ApiKeyRow['scope']; expiresAt?: Date | undefined },
): Promise<{ key: string; row: ApiKeyRow }> {
  const { key, prefix, hash } = generateKey();
  const row = await database.transaction(async (tx) => {
    await requireCrm(tx, crmId);
    const inserted = await tx
      .insertInto('apiKey')
      .values({ crmId, prefix, keyHash: hash, scope, expiresAt: expiresAt ?? null })
      .returningAll()
      .returning(sql<boolean>`coalesce(expires_at <= now(), false)`.as('expired'))
      .executeTakeFirstOrThrow();
    if (inserted.expired) throw new DomainError('key.invalid_expiry');
    await recordAction(tx, 'key.create', crmId, prefix, scope);
    return inserted;
  });
  return { key, row };
}
