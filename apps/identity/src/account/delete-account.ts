import { DomainError } from '@scheduling/errors';
import { forgetKeys } from '@scheduling/postgres';
import type { IdentityDependencies } from '../dependencies.ts';

/** How many of the providers of an account are named. */
const maxNamed = 10;

/**
 * Deletes an account (interface 4.6). Rejects with `account.not_found`, or with `account.in_use` while it has providers.
 * The lock waits for providers that are being created for the account, and delays later ones until there is no such
 * account.
 */
export async function deleteAccount(
  { database }: IdentityDependencies,
  { crmId, reference }: { crmId: string; reference: string },
): Promise<void> {
  await database.transaction(async (tx) => {
    const account = await tx
      .selectFrom('account')
      .select('id')
      .where('crmId', '=', crmId)
      .where('reference', '=', reference)
      .forUpdate()
      .executeTakeFirstOrThrow(() => new DomainError('account.not_found'));
    const providers = await tx
      .selectFrom('provider')
      .select('reference')
      .where('crmId', '=', crmId)
      .where('accountId', '=', account.id)
      .orderBy('id')
      .limit(maxNamed + 1)
      .execute();
    if (providers.length > 0) throw inUse(providers.map((provider) => provider.reference));
    await tx.deleteFrom('account').where('crmId', '=', crmId).where('id', '=', account.id).execute();
    await forgetKeys(tx, crmId, [account.id]);
  });
}

function inUse(references: string[]): DomainError {
  const named = references.slice(0, maxNamed).join(', ') + (references.length > maxNamed ? ' and more' : '');
  return new DomainError('account.in_use', {
    text: `The account cannot be deleted, because it has the providers ${named}.`,
  });
}
