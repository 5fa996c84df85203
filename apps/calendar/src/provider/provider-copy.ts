import type { Provider } from '@scheduling/contracts/identity/v1';
import type { ProviderKey } from '@scheduling/service';
import type { Kysely, Selectable } from 'kysely';
import type { CalendarSchema, ProviderTable } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';

export type ProviderRow = Selectable<ProviderTable>;

type ProviderSources = Pick<CalendarDependencies, 'database' | 'identity'>;

/**
 * The provider with this reference; one that calendar does not know yet is fetched. Rejects with `provider.not_found`.
 */
export async function requireProvider(dependencies: ProviderSources, key: ProviderKey): Promise<ProviderRow> {
  const known = await dependencies.database.kysely
    .selectFrom('provider')
    .selectAll()
    .where('crmId', '=', key.crmId)
    .where('reference', '=', key.providerReference)
    .executeTakeFirst();
  return known ?? fetchProvider(dependencies, key);
}

/**
 * Fetches the provider from identity and stores a copy. That there is none is not cached, because it may be created at
 * any moment.
 */
async function fetchProvider({ database, identity }: ProviderSources, key: ProviderKey): Promise<ProviderRow> {
  const { provider } = await identity.getProvider({
    crmId: key.crmId,
    key: { $case: 'reference', value: key.providerReference },
  });
  return storeProvider(database.kysely, key.crmId, provider!);
}

/**
 * A newer copy replaces an older one, never the reverse. Two statements: an upsert handles conflicts on one unique
 * index only, and when a request and an event store the same provider concurrently, either index may report the
 * conflict.
 */
export async function storeProvider(
  db: Kysely<CalendarSchema>,
  crmId: string,
  provider: Provider,
): Promise<ProviderRow> {
  const { id, reference, timeZone, version } = provider;
  const row = { crmId, id, reference, timeZone, version };
  await db
    .insertInto('provider')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await db
    .updateTable('provider')
    .set(row)
    .where('crmId', '=', crmId)
    .where('id', '=', row.id)
    .where('version', '<', row.version)
    .execute();
  return row;
}
