import type { Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';

/** Gives a user access to a provider. False if the user already had access. */
export async function insertStaff(
  tx: Transaction<IdentitySchema>,
  provider: { crmId: string; id: string },
  userId: string,
): Promise<boolean> {
  const inserted = await tx
    .insertInto('providerStaff')
    .values({ crmId: provider.crmId, providerId: provider.id, userId })
    .onConflict((conflict) => conflict.columns(['crmId', 'providerId', 'userId']).doNothing())
    .returning('userId')
    .executeTakeFirst();
  return inserted !== undefined;
}
