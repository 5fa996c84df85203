import { sql } from 'kysely';
import type { IdentityDependencies } from '../dependencies.ts';
import { requireProvider } from './get-provider.ts';
import type { ProviderRow } from './provider.ts';

export interface ProviderReopening {
  crmId: string;
  providerId: string;
  closedVersion: number;
}

/**
 * The provider with a higher version than the one that was closed to be deleted, which cannot be deleted any more
 * (ADR 43). Rejects with `provider.not_found`.
 */
export async function reopenProvider(
  { database }: IdentityDependencies,
  { crmId, providerId: id, closedVersion }: ProviderReopening,
): Promise<ProviderRow> {
  return database.transaction(async (tx) => {
    await tx
      .updateTable('provider')
      .set({ version: sql<number>`version + 1` })
      .where('crmId', '=', crmId)
      .where('id', '=', id)
      .where('version', '<=', closedVersion)
      .execute();
    return requireProvider(tx, { crmId, id });
  });
}
