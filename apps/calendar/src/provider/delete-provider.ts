import type { GetProviderRequest } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import type { CalendarDependencies } from '../dependencies.ts';
import { closeProvider } from './close-provider.ts';

/** Whoever uses the provider meanwhile has it deleted anew, or not at all. */
const maxAttempts = 5;

/**
 * Deletes a provider of which nothing is left (ADR 43). Customer and calendar first stop storing anything for its
 * present version, and identity deletes it if it still has that. Whatever ends in between, the next one who needs the
 * provider opens it with another version, or a repeated deletion completes. Rejects with `provider.not_found`, with
 * `provider.in_use`, or with `service.unavailable` if others keep using it.
 */
export async function deleteProvider(
  dependencies: CalendarDependencies,
  { crmId, key }: GetProviderRequest,
): Promise<void> {
  const { identity, customers } = dependencies;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const { provider } = await identity.getProvider({ crmId, key });
    const { id, version } = provider!;
    await customers.closeProvider({ crmId, providerId: id, version });
    await closeProvider(dependencies, { crmId, id, version });
    const { deleted } = await identity.deleteClosedProvider({ crmId, providerId: id, version });
    if (deleted) return;
  }
  throw new DomainError('service.unavailable', { text: 'The provider is being used by others.' });
}
