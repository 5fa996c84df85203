import { LRUCache } from 'lru-cache';
import type { WebhookDependencies } from '../dependencies.ts';

/** References of providers by CRM and id, and the other way round. A provider is never deleted, and keeps both. */
export interface ProviderNames {
  references: LRUCache<string, string>;
  ids: LRUCache<string, string>;
}

const maxProviders = 10_000;

export function createProviderNames(): ProviderNames {
  return { references: new LRUCache({ max: maxProviders }), ids: new LRUCache({ max: maxProviders }) };
}

/** Rejects with `provider.not_found`. */
export async function requireProviderId(
  { identity, providerNames: { ids } }: WebhookDependencies,
  crmId: string,
  reference: string,
): Promise<string> {
  const known = ids.get(keyOf(crmId, reference));
  if (known !== undefined) return known;
  const { provider } = await identity.getProvider({ crmId, key: { $case: 'reference', value: reference } });
  ids.set(keyOf(crmId, reference), provider!.id);
  return provider!.id;
}

/** Asks identity for those that are not known yet. */
export async function findProviderReferences(
  { identity, providerNames: { references } }: WebhookDependencies,
  crmId: string,
  ids: string[],
): Promise<Map<string, string>> {
  const unknown = ids.filter((id) => !references.has(keyOf(crmId, id)));
  if (unknown.length > 0) {
    const { providers } = await identity.listProviderReferences({ crmId, providerIds: unknown });
    for (const { id, reference } of providers) references.set(keyOf(crmId, id), reference);
  }
  return new Map(
    ids.flatMap((id) => {
      const reference = references.get(keyOf(crmId, id));
      return reference === undefined ? [] : [[id, reference]];
    }),
  );
}

function keyOf(crmId: string, name: string): string {
  return `${crmId} ${name}`;
}
