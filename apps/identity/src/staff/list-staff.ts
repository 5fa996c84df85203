import { sql } from 'kysely';
import type { IdentityDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/get-provider.ts';
import type { UserRow } from '../user/user.ts';

/** The owner, then the others in the order in which they were added. Rejects with `provider.not_found`. */
export async function listStaff(
  { database }: IdentityDependencies,
  { crmId, providerReference }: { crmId: string; providerReference: string },
): Promise<UserRow[]> {
  const provider = await requireProvider(database.kysely, { crmId, reference: providerReference });
  return database.kysely
    .selectFrom('provider_staff')
    .innerJoin('app_user', (join) =>
      join.onRef('app_user.crm_id', '=', 'provider_staff.crm_id').onRef('app_user.id', '=', 'provider_staff.user_id'),
    )
    .selectAll('app_user')
    .where('provider_staff.crm_id', '=', crmId)
    .where('provider_staff.provider_id', '=', provider.id)
    .orderBy(sql`app_user.id = ${provider.owner_id}`, 'desc')
    .orderBy('provider_staff.added_at')
    .orderBy('app_user.id')
    .execute();
}
