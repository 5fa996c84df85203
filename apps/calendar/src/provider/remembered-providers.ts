import { DomainError } from '@scheduling/errors';
import type { ProviderKey } from '@scheduling/service';
import type { CalendarDependencies } from '../dependencies.ts';
import type { ProviderRow } from './provider-copy.ts';

/** What work answers when the provider's row has another version. */
export type ProviderChanged = 'provider_changed';

/** A provider changes rarely. */
const maxAttempts = 3;

/**
 * Does the work with the provider as this process remembers it, which saves a round trip. The work compares the version
 * with that of the row, in the statement that relies on it. If the row has changed, and before a request is rejected as
 * invalid, the work is done again with the row as it is now. Rejects with `provider.not_found`.
 */
export async function withRememberedProvider<Result>(
  { providers }: Pick<CalendarDependencies, 'providers'>,
  key: ProviderKey,
  work: (provider: ProviderRow) => Promise<Result | ProviderChanged>,
): Promise<Result | ProviderChanged> {
  const remembered = providers.get(key);
  if (remembered !== undefined) {
    const result = await work(remembered).catch(changedIfInvalid);
    if (result !== 'provider_changed') return result;
  }
  return work(await providers.refresh(key));
}

/**
 * The same for work that only reads, again if the provider changes at that moment. Rejects with `provider.not_found`,
 * or with `service.unavailable` if it does not stop changing.
 */
export async function readWithRememberedProvider<Result>(
  dependencies: CalendarDependencies,
  key: ProviderKey,
  read: (provider: ProviderRow) => Promise<Result | ProviderChanged>,
): Promise<Result> {
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const result = await withRememberedProvider(dependencies, key, read);
    if (result !== 'provider_changed') return result;
  }
  throw new DomainError('service.unavailable', { text: 'The provider is being changed by others.' });
}

/** In another time zone, the request may be valid. */
function changedIfInvalid(error: unknown): ProviderChanged {
  if (error instanceof DomainError && error.category === 'invalid') return 'provider_changed';
  throw error;
}
