import { isUuid } from '@scheduling/runtime';
import type { Kysely, Selectable } from 'kysely';
import type { IdentitySchema, ProviderTable } from '../db/schema.ts';

/** With the references of its owner and its account. */
export type ProviderRow = Selectable<ProviderTable> & { owner_reference: string; account_reference: string };

export type ProviderKey = { crmId: string } & ({ reference: string } | { id: string });

export async function findProvider(db: Kysely<IdentitySchema>, key: ProviderKey): Promise<ProviderRow | undefined> {
  if ('id' in key && !isUuid(key.id)) return undefined;
  const query = db
    .selectFrom('provider')
    .innerJoin('app_user', (join) => join.onRef('app_user.crm_id', '=', 'provider.crm_id').onRef('app_user.id', '=', 'provider.owner_id'))
    .innerJoin('account', (join) => join.onRef('account.crm_id', '=', 'provider.crm_id').onRef('account.id', '=', 'provider.account_id'))
    .selectAll('provider')
    .select((select) => select.ref('app_user.reference').$notNull().as('owner_reference'))
    .select('account.reference as account_reference')
    .where('provider.crm_id', '=', key.crmId);
  return 'id' in key
    ? query.where('provider.id', '=', key.id).executeTakeFirst()
    : query.where('provider.reference', '=', key.reference).executeTakeFirst();
}
