import { AdminServiceService, KeyScope } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import type { Broker } from '@scheduling/events';
import { type HostedService, hostOperatorService } from '@scheduling/rpc';
import { createKey } from './api-key/create-key.ts';
import { parseScope } from './api-key/key-scope.ts';
import { listKeys } from './api-key/list-keys.ts';
import { replayKeyRevocations } from './api-key/replay-key-revocations.ts';
import { revokeKey } from './api-key/revoke-key.ts';
import { createCrm } from './crm/create-crm.ts';
import { listCrms } from './crm/get-crm.ts';
import { updateCrm } from './crm/update-crm.ts';
import type { IdentityDependencies } from './dependencies.ts';
import { toApiKeyMessage, toCrmMessage } from './messages.ts';
import { listProvidersWithoutContact } from './provider/list-providers-without-contact.ts';
import { replayProviderDeletions } from './provider/replay-provider-deletions.ts';
import { replayUserDeletions } from './user/replay-user-deletions.ts';

/** The operators' interface. Maps protobuf messages to the use cases and back. */
export function hostAdminService(dependencies: IdentityDependencies, broker: Broker): HostedService {
  return hostOperatorService(AdminServiceService, {
    createCrm: async (request) => ({ crm: toCrmMessage(await createCrm(dependencies, request)) }),
    updateCrm: async (request) => ({ crm: toCrmMessage(await updateCrm(dependencies, request)) }),
    listCrms: async () => ({ crms: (await listCrms(dependencies)).map(toCrmMessage) }),
    createKey: async (request) => {
      const { scope = KeyScope.ALL, ...fields } = request;
      const { key, row } = await createKey(dependencies, { ...fields, scope: parseScope(scope) });
      return { key, apiKey: toApiKeyMessage(row) };
    },
    listKeys: async ({ crmId }) => ({ apiKeys: (await listKeys(dependencies, crmId)).map(toApiKeyMessage) }),
    revokeKey: async ({ prefix }) => ({ apiKey: toApiKeyMessage(await revokeKey(dependencies, prefix)) }),
    replayUserDeletions: async ({ since, continuation }) =>
      replayUserDeletions(dependencies, broker, { since: requireSince(since), continuation }),
    replayProviderDeletions: async ({ since, continuation }) =>
      replayProviderDeletions(dependencies, broker, { since: requireSince(since), continuation }),
    replayKeyRevocations: async ({ since }) => replayKeyRevocations(dependencies, broker, requireSince(since)),
    listProvidersWithoutContact: () => listProvidersWithoutContact(dependencies),
  });
}

function requireSince(since: Date | undefined): Date {
  if (since === undefined) throw new DomainError('erasure.since_missing');
  return since;
}
