import { LRUCache } from 'lru-cache';
import type { CustomerDependencies } from './customer.ts';

/** Ids of providers, by CRM and reference. */
export type ProviderIds = LRUCache<string, string>;

const maxProviders = 10_000;

export function createProviderIds(): ProviderIds {
  return new LRUCache({ max: maxProviders });
}

/**
 * The id of the provider with this reference. Identity is asked once: a provider is never deleted, and keeps its id and
 * its reference. That there is none is not remembered. Rejects with `provider.not_found`.
 */
export async function requireProviderId(
  { identity, providerIds }: CustomerDependencies,
  { crmId, providerReference }: { crmId: string; providerReference: string },
): Promise<string> {
  const name = `${crmId} ${providerReference}`;
  const known = providerIds.get(name);
  if (known !== undefined) return known;
  const { provider } = await identity.getProvider({ crmId, key: { $case: 'reference', value: providerReference } });
  providerIds.set(name, provider!.id);
  return provider!.id;
}
