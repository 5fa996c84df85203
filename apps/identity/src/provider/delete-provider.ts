import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { forgetKeys } from '@scheduling/postgres';
import type { IdentityDependencies } from '../dependencies.ts';

export interface ProviderDeletion {
  crmId: string;
  providerId: string;
  /** That of which calendar and customer have nothing, and for which they store nothing. */
  version: number;
}

/**
 * Deletes a provider with the access of its staff, and publishes it, if it still has this version (ADR 43): nothing
 * refers to that. False if it has another one. Rejects with `provider.not_found`.
 */
export async function deleteProvider(
  { database }: IdentityDependencies,
  { crmId, providerId: id, version }: ProviderDeletion,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    // Waits for staff that is being added, and delays later ones until there is no such provider.
    const provider = await tx
      .selectFrom('provider')
      .select('version')
      .where('crmId', '=', crmId)
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirstOrThrow(() => new DomainError('provider.not_found'));
    if (provider.version !== version) return false;
    await tx.deleteFrom('providerStaff').where('crmId', '=', crmId).where('providerId', '=', id).execute();
    await tx.deleteFrom('provider').where('crmId', '=', crmId).where('id', '=', id).execute();
    await forgetKeys(tx, crmId, [id]);
    await appendEvent(tx, events.providerDeleted, { crmId, providerId: id });
    return true;
  });
}
