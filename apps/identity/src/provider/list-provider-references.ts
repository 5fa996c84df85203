import { sql } from 'kysely';
import type { IdentityDependencies } from '../dependencies.ts';

/** The references of the providers with these ids, without those that do not exist. */
export function listProviderReferences(
  { database }: IdentityDependencies,
  { crmId, providerIds }: { crmId: string; providerIds: string[] },
): Promise<{ id: string; reference: string }[]> {
  return database.kysely
    .selectFrom('provider')
    .select(['id', 'reference'])
    .where('crmId', '=', crmId)
    .where('id', '=', sql<string>`ANY(${providerIds}::uuid[])`)
    .execute();
}
