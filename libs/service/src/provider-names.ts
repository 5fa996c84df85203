import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { ClientOf } from '@scheduling/rpc';
import { LRUCache } from 'lru-cache';
import { createProviderCache, maxProviders, type ProviderKey } from './provider-cache.ts';

/** Ids and references of providers. Identity is asked once: a provider is never deleted, and keeps both. */
export interface ProviderNames {
  /** Rejects with `provider.not_found`. */
  requireId(key: ProviderKey): Promise<string>;
  /** The references of those that exist, by id. Identity is asked for those that are not known yet. */
  findReferences(crmId: string, ids: string[]): Promise<Map<string, string>>;
}

export function createProviderNames(identity: ClientOf<typeof IdentityServiceService>): ProviderNames {
  const ids = createProviderCache(async ({ crmId, providerReference: value }) => {
    const { provider } = await identity.getProvider({ crmId, key: { $case: 'reference', value } });
    return provider!.id;
  });
  const references = new LRUCache<string, string>({ max: maxProviders });
  return {
    requireId: async (key) => ids.get(key) ?? ids.refresh(key),
    findReferences: async (crmId, providerIds) => {
      const unknown = providerIds.filter((id) => !references.has(`${crmId} ${id}`));
      if (unknown.length > 0) {
        const { providers } = await identity.listProviderReferences({ crmId, providerIds: unknown });
        for (const { id, reference } of providers) references.set(`${crmId} ${id}`, reference);
      }
      return new Map(
        providerIds.flatMap((id) => {
          const reference = references.get(`${crmId} ${id}`);
          return reference === undefined ? [] : [[id, reference]];
        }),
      );
    },
  };
}
