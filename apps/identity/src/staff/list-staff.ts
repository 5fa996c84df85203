import { sql } from 'kysely';
import type { IdentityDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/get-provider.ts';
import type { UserRow } from '../user/user.ts';

/** The owner, then the others in the order they were added. Rejects with `provider.not_found`. */
export async function listStaff(
  { database }: IdentityDependencies,
  { crmId, providerReference }: { crmId: string; providerReference: string },
): Promise<UserRow[]> {
  const provider = await requireProvider(database.kysely, { crmId, reference: providerReference });
  return database.kysely
    .selectFrom('providerStaff')
    .innerJoin('appUser', (join) =>
      join.onRef('appUser.crmId', '=', 'providerStaff.crmId').onRef('appUser.id', '=', 'providerStaff.userId'),
    )
    .selectAll('appUser')
    .where('providerStaff.crmId', '=', crmId)
    .where('providerStaff.providerId', '=', provider.id)
    .orderBy(sql`app_user.id = ${provider.ownerId}`, 'desc')
    .orderBy('providerStaff.addedAt')
    .orderBy('appUser.id')
    .execute();
}
