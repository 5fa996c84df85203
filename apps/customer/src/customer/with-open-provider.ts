import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { isCheckViolation } from '@scheduling/postgres';
import type { ProviderKey } from '@scheduling/service';
import type { CustomerDependencies } from './customer.ts';

/** Others may begin to delete the provider each time. */
const maxAttempts = 5;

/**
 * Does work that stores a customer, with the id of the provider as this process remembers it. If that provider is
 * closed, identity is asked: it may have been deleted, and another one may have the reference since, or its deletion has
 * not been completed, and ends (ADR 43). Rejects with `provider.not_found`.
 */
export async function withOpenProvider<Result>(
  dependencies: CustomerDependencies,
  key: ProviderKey,
  work: (providerId: string) => Promise<Result>,
): Promise<Result> {
  let providerId = await dependencies.providers.rememberedId(key);
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    try {
      return await work(providerId);
    } catch (error) {
      if (!isCheckViolation(error, 'customer_provider_open')) throw error;
    }
    await reopen(dependencies, key.crmId, providerId);
    providerId = await dependencies.providers.requireId(key);
  }
  throw new DomainError('service.unavailable', { text: 'The provider is being deleted.' });
}

/** Unless it was deleted. */
async function reopen({ database, identity }: CustomerDependencies, crmId: string, providerId: string): Promise<void> {
  const closed = await database.kysely
    .selectFrom('closedProvider')
    .select('version')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .executeTakeFirst();
  if (closed === undefined) return;
  const answer = await undefinedIfNotFound(
    identity.reopenProvider({ crmId, providerId, closedVersion: closed.version }),
  );
  if (answer === undefined) return;
  await database.kysely
    .deleteFrom('closedProvider')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .where('version', '<', answer.provider!.version)
    .execute();
}
