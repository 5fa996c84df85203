import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import type { Broker } from '@scheduling/events';
import { type HostedService, hostOperatorService, withoutNulls } from '@scheduling/rpc';
import { createKey } from './api-key/create-key.ts';
import { listKeys } from './api-key/list-keys.ts';
import { replayKeyRevocations } from './api-key/replay-key-revocations.ts';
import { revokeKey } from './api-key/revoke-key.ts';
import { createCrm } from './crm/create-crm.ts';
import { listCrms } from './crm/get-crm.ts';
import { updateCrm } from './crm/update-crm.ts';
import type { IdentityDependencies } from './dependencies.ts';
import { toCrmMessage } from './messages.ts';
import { listProvidersWithoutContact } from './provider/list-providers-without-contact.ts';
import { replayUserDeletions } from './user/replay-user-deletions.ts';

/** The operators' interface. Maps protobuf messages to the use cases and back. */
export function hostAdminService(dependencies: IdentityDependencies, broker: Broker): HostedService {
  return hostOperatorService(AdminServiceService, {
    createCrm: async (request) => ({ crm: toCrmMessage(await createCrm(dependencies, request)) }),
    updateCrm: async (request) => ({ crm: toCrmMessage(await updateCrm(dependencies, request)) }),
    listCrms: async () => ({ crms: (await listCrms(dependencies)).map(toCrmMessage) }),
    createKey: async (request) => {
      const { key, row } = await createKey(dependencies, request);
      return { key, apiKey: withoutNulls(row) };
    },
    listKeys: async ({ crmId }) => ({ apiKeys: (await listKeys(dependencies, crmId)).map(withoutNulls) }),
    revokeKey: async ({ prefix }) => ({ apiKey: withoutNulls(await revokeKey(dependencies, prefix)) }),
    replayUserDeletions: async ({ since, continuation }) => {
      if (since === undefined) throw new DomainError('erasure.since_missing');
      return replayUserDeletions(dependencies, broker, { since, continuation });
    },
    replayKeyRevocations: async ({ since }) => {
      if (since === undefined) throw new DomainError('erasure.since_missing');
      return replayKeyRevocations(dependencies, broker, since);
    },
    listProvidersWithoutContact: () => listProvidersWithoutContact(dependencies),
  });
}
