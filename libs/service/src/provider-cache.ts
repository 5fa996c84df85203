import { LRUCache } from 'lru-cache';

export interface ProviderKey {
  crmId: string;
  providerReference: string;
}

/** What a process has read about providers, by CRM and reference, within the last hour. */
export interface ProviderCache<Value> {
  /** As it was last read; undefined if it was not. It may have changed since. */
  get(key: ProviderKey): Value | undefined;
  /** Reads it, and remembers it. */
  refresh(key: ProviderKey): Promise<Value>;
}

export const maxProviders = 10_000;
const hourMs = 60 * 60 * 1_000;

/**
 * `read` rejects with `provider.not_found` if there is no such provider. That is not remembered, because one may be
 * created at any moment.
 */
export function createProviderCache<Value extends object | string>(
  read: (key: ProviderKey) => Promise<Value>,
): ProviderCache<Value> {
  const values = new LRUCache<string, Value>({ max: maxProviders, ttl: hourMs });
  const nameOf = ({ crmId, providerReference }: ProviderKey): string => `${crmId} ${providerReference}`;
  return {
    get: (key) => values.get(nameOf(key)),
    refresh: async (key) => {
      const value = await read(key);
      values.set(nameOf(key), value);
      return value;
    },
  };
}
