import { KeyScope } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { sql } from 'kysely';
import type { CrmRow } from '../crm/crm.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import type { ApiKeyRow } from './api-key.ts';
import { toScopeMessage } from './key-scope.ts';

export interface AuthenticatedKey {
  crm: CrmRow;
  key: Pick<ApiKeyRow, 'prefix' | 'scope' | 'createdAt' | 'expiresAt'>;
}

const active = sql<boolean>`api_key.revoked_at IS NULL AND (api_key.expires_at IS NULL OR api_key.expires_at > now())`;
const useNotNoted = sql<boolean>`api_key.last_used_at IS NULL OR api_key.last_used_at < now() - interval '1 minute'`;

/**
 * The CRM whose key has this SHA-256 hash and is active by the database's clock. A key with a scope that the caller does
 * not enforce is unknown to it. Rejects with `key.invalid`.
 */
export async function authenticateKey(
  dependencies: IdentityDependencies,
  { keyHash, enforcedScopes }: { keyHash: Buffer; enforcedScopes: KeyScope[] },
): Promise<AuthenticatedKey> {
  const { prefix, scope, keyCreatedAt, expiresAt, isUseNotNoted, ...crm } = await dependencies.database.kysely
    .selectFrom('apiKey')
    .innerJoin('crm', 'crm.crmId', 'apiKey.crmId')
    .selectAll('crm')
    .select(['apiKey.prefix', 'apiKey.scope', 'apiKey.createdAt as keyCreatedAt', 'apiKey.expiresAt'])
    .select(useNotNoted.as('isUseNotNoted'))
    .where('apiKey.keyHash', '=', keyHash)
    .where(active)
    .executeTakeFirstOrThrow(() => new DomainError('key.invalid'));
  if (![KeyScope.ALL, ...enforcedScopes].includes(toScopeMessage(scope))) throw new DomainError('key.invalid');
  // This write is not awaited; if it fails, the stored time is merely older.
  if (isUseNotNoted) void noteUse(dependencies, keyHash);
  return { crm, key: { prefix, scope, createdAt: keyCreatedAt, expiresAt } };
}

/** The condition is checked again under the row lock, so only one of many concurrent calls writes. */
async function noteUse({ database, logger }: IdentityDependencies, keyHash: Buffer): Promise<void> {
  try {
    await database.kysely
      .updateTable('apiKey')
      .set({ lastUsedAt: sql<Date>`now()` })
      .where('keyHash', '=', keyHash)
      .where(useNotNoted)
      .execute();
  } catch (error) {
    logger.warn({ err: error }, 'the last use of a key could not be recorded');
  }
}
