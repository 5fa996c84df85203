import type { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { ClientOf } from '@scheduling/rpc';
import { LRUCache } from 'lru-cache';
import { createProviderCache, maxProviders, type ProviderKey } from './provider-cache.ts';

/** Ids and references of providers. A provider keeps both until it is deleted; then another one may get the reference. */
export interface ProviderNames {
  /** As identity says now. Rejects with `provider.not_found`. */
  requireId(key: ProviderKey): Promise<string>;
  /** As identity said within the last hour, or else now: the provider may have been deleted since. Rejects with `provider.not_found`. */
  rememberedId(key: ProviderKey): Promise<string>;
  /** The references of those that exist, by id, or did a minute ago. */
  findReferences(crmId: string, ids: string[]): Promise<Map<string, string>>;
}

export function createProviderNames(identity: ClientOf<typeof IdentityServiceService>): ProviderNames {
  const ids = createProviderCache(async ({ crmId, providerReference: value }) => {
    const { provider } = await identity.getProvider({ crmId, key: { $case: 'reference', value } });
    return provider!.id;
  });
  const references = new LRUCache<string, string>({ max: maxProviders, ttl: 60_000 });
  return {
    requireId: (key) => ids.refresh(key),
    rememberedId: async (key) => ids.get(key) ?? ids.refresh(key),
    findReferences: async (crmId, providerIds) => {
      const found = new Map<string, string>();
      for (const id of providerIds) {
        const reference = references.get(`${crmId} ${id}`);
        if (reference !== undefined) found.set(id, reference);
      }
      const unknown = providerIds.filter((id) => !found.has(id));
      if (unknown.length === 0) return found;
      const { providers } = await identity.listProviderReferences({ crmId, providerIds: unknown });
      for (const { id, reference } of providers) {
        references.set(`${crmId} ${id}`, reference);
        found.set(id, reference);
      }
      return found;
    },
  };
}
