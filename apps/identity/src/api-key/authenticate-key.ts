import { DomainError } from '@scheduling/errors';
import { sql } from 'kysely';
import type { CrmRow } from '../crm/crm.ts';
import type { IdentityDependencies } from '../dependencies.ts';

export interface AuthenticatedKey {
  crm: CrmRow;
  prefix: string;
  expiresAt: Date | null;
}

const active = sql<boolean>`api_key.revoked_at IS NULL AND (api_key.expires_at IS NULL OR api_key.expires_at > now())`;
const useNotNoted = sql<boolean>`api_key.last_used_at IS NULL OR api_key.last_used_at < now() - interval '1 minute'`;

/** The CRM whose key has this SHA-256 hash and is active by the database's clock. Rejects with `key.invalid`. */
export async function authenticateKey(dependencies: IdentityDependencies, keyHash: Buffer): Promise<AuthenticatedKey> {
  const { prefix, expires_at, use_not_noted, ...crm } = await dependencies.database.kysely
    .selectFrom('api_key')
    .innerJoin('crm', 'crm.crm_id', 'api_key.crm_id')
    .selectAll('crm')
    .select(['api_key.prefix', 'api_key.expires_at', useNotNoted.as('use_not_noted')])
    .where('api_key.key_hash', '=', keyHash)
    .where(active)
    .executeTakeFirstOrThrow(() => new DomainError('key.invalid'));
  // Nobody waits for this write, and its failure costs nothing but a later time.
  if (use_not_noted) void noteUse(dependencies, keyHash);
  return { crm, prefix, expiresAt: expires_at };
}

/** The condition is checked again under the row's lock, so of many at once one writes. */
async function noteUse({ database, logger }: IdentityDependencies, keyHash: Buffer): Promise<void> {
  try {
    await database.kysely
      .updateTable('api_key')
      .set({ last_used_at: sql<Date>`now()` })
      .where('key_hash', '=', keyHash)
      .where(useNotNoted)
      .execute();
  } catch (error) {
    logger.warn({ err: error }, 'the last use of a key could not be recorded');
  }
}
