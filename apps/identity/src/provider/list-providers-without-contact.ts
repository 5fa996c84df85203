import type { IdentityDependencies } from '../dependencies.ts';

const maxListed = 1_000;

export interface ProvidersWithoutContact {
  /** The first ones. */
  providers: { crmId: string; providerId: string; reference: string }[];
  /** Of all. */
  count: number;
}

/** Those that persons cannot ask, except of sandboxes. */
export async function listProvidersWithoutContact({
  database: { kysely },
}: IdentityDependencies): Promise<ProvidersWithoutContact> {
  const all = kysely
    .selectFrom('provider')
    .innerJoin('crm', 'crm.crmId', 'provider.crmId')
    .where('crm.sandbox', '=', false)
    .where('provider.email', 'is', null)
    .where('provider.phone', 'is', null)
    .where('provider.mobile', 'is', null);
  const [providers, { count }] = await Promise.all([
    all
      .select(['provider.crmId', 'provider.id as providerId', 'provider.reference'])
      .orderBy('provider.crmId')
      .orderBy('provider.reference')
      .limit(maxListed)
      .execute(),
    all.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow(),
  ]);
  return { providers, count };
}
