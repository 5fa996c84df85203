import type { Provider } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import { isUuid } from '@scheduling/runtime';
import type { ProviderKey } from '@scheduling/service';
import type { QueryExecutorProvider, Selectable } from 'kysely';
import type { ProviderTable } from '../db/schema.ts';
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

/** A provider that calendar knows. Rejects with `provider.not_found`. */
export async function requireCopy({ database }: ProviderSources, crmId: string, id: string): Promise<ProviderRow> {
  if (!isUuid(id)) throw new DomainError('provider.not_found');
  const known = await database.kysely
    .selectFrom('provider')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .executeTakeFirst();
  if (known === undefined) throw new DomainError('provider.not_found');
  return known;
}

/** Others may begin to delete the provider each time. */
const maxAttempts = 5;

/**
 * Fetches the provider from identity and stores a copy. That there is none is not cached, because it may be created at
 * any moment. One that is closed, because it is being deleted, is opened: the deletion has not been completed, and ends
 * (ADR 43).
 */
async function fetchProvider({ database, identity }: ProviderSources, key: ProviderKey): Promise<ProviderRow> {
  const { crmId, providerReference: value } = key;
  let { provider } = await identity.getProvider({ crmId, key: { $case: 'reference', value } });
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    if (await storeProvider(database.kysely, crmId, provider!)) return rowOf(crmId, provider!);
    const { id: providerId, version: closedVersion } = provider!;
    ({ provider } = await identity.reopenProvider({ crmId, providerId, closedVersion }));
  }
  throw new DomainError('service.unavailable', { text: 'The provider is being deleted.' });
}

/** A newer copy replaces an older one, never the reverse. False if the provider is closed. */
export function storeProvider(db: QueryExecutorProvider, crmId: string, provider: Provider): Promise<boolean> {
  const request = rowOf(crmId, provider);
  return callFunction<boolean>(db, { name: 'store_provider', request, locks: `provider ${provider.id}` });
}

function rowOf(crmId: string, { id, reference, timeZone, version }: Provider): ProviderRow {
  return { crmId, id, reference, timeZone, version };
}
