import { DomainError } from '@scheduling/errors';
import type { Kysely } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { findProvider, type ProviderKey, type ProviderRow } from './provider.ts';

/** Rejects with `provider.not_found`, also for a provider of another CRM. */
export function getProvider({ database }: IdentityDependencies, key: ProviderKey): Promise<ProviderRow> {
  return requireProvider(database.kysely, key);
}

export async function requireProvider(db: Kysely<IdentitySchema>, key: ProviderKey): Promise<ProviderRow> {
  const provider = await findProvider(db, key);
  if (provider === undefined) throw new DomainError('provider.not_found');
  return provider;
}
