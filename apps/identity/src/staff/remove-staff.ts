import { DomainError } from '@scheduling/errors';
import type { IdentityDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/get-provider.ts';
import { findUserByReference } from '../user/get-user.ts';

export interface RemoveStaff {
  crmId: string;
  providerReference: string;
  /** An invited person has none, and cannot be removed until the CRM has assigned one. */
  userReference: string;
}

/**
 * Revokes a user's access. Rejects with `provider.not_found`, `staff.not_found`, or `staff.owner` for the owner, who
 * keeps it.
 */
export async function removeStaff(
  { database }: IdentityDependencies,
  { crmId, providerReference, userReference }: RemoveStaff,
): Promise<void> {
  await database.transaction(async (tx) => {
    const provider = await requireProvider(tx, { crmId, reference: providerReference });
    const user = await findUserByReference(tx, { crmId, reference: userReference });
    if (user === undefined) throw new DomainError('staff.not_found');
    if (user.id === provider.ownerId) throw new DomainError('staff.owner');
    await tx
      .deleteFrom('providerStaff')
      .where('crmId', '=', crmId)
      .where('providerId', '=', provider.id)
      .where('userId', '=', user.id)
      .returning('userId')
      .executeTakeFirstOrThrow(() => new DomainError('staff.not_found'));
  });
}
