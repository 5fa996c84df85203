import {
  type AddStaffRequest,
  type GetProviderRequest,
  IdentityServiceService,
  PublicProviderServiceService,
  VerificationState,
} from '@scheduling/contracts/identity/v1';
import { type Handlers, type HostedService, hostService, partOfPages, withoutNulls } from '@scheduling/rpc';
import { createAccount } from './account/create-account.ts';
import { deleteAccount } from './account/delete-account.ts';
import { getAccount } from './account/get-account.ts';
import { listAccounts } from './account/list-accounts.ts';
import { updateAccount } from './account/update-account.ts';
import { authenticateKey } from './api-key/authenticate-key.ts';
import { callers } from './callers.ts';
import { getCrm } from './crm/get-crm.ts';
import { listRetentionPeriods } from './crm/list-retention-periods.ts';
import type { IdentityDependencies } from './dependencies.ts';
import { toAccountMessage, toAuthenticatedMessage, toCrmMessage, toUserMessage } from './messages.ts';
import { createProvider } from './provider/create-provider.ts';
import { deleteProvider } from './provider/delete-provider.ts';
import { getProvider } from './provider/get-provider.ts';
import { getPublicProvider } from './provider/get-public-provider.ts';
import { listProviderReferences } from './provider/list-provider-references.ts';
import { listProviders } from './provider/list-providers.ts';
import { getProviderRecipient, listProviderRecipients } from './provider/provider-recipients.ts';
import type { ProviderKey } from './provider/provider.ts';
import { reopenProvider } from './provider/reopen-provider.ts';
import { updateProvider } from './provider/update-provider.ts';
import { type AddStaff, addStaff } from './staff/add-staff.ts';
import { listStaff } from './staff/list-staff.ts';
import { removeStaff } from './staff/remove-staff.ts';
import { createUser } from './user/create-user.ts';
import { deleteUser } from './user/delete-user.ts';
import { getUser } from './user/get-user.ts';
import { listUsers } from './user/list-users.ts';
import { updateUser } from './user/update-user.ts';
import { confirmVerification } from './verification/confirm-verification.ts';
import { getUserVerification } from './user/get-user-verification.ts';
import { getVerification } from './verification/get-verification.ts';
import { issueVerificationToken } from './verification/issue-verification-token.ts';
import { requestVerification } from './user/request-verification.ts';

/** Maps protobuf messages to the use cases and back. */
export function hostIdentityService(dependencies: IdentityDependencies): HostedService {
  return hostService(IdentityServiceService, callers.IdentityService, {
    authenticateKey: async (request) => toAuthenticatedMessage(await authenticateKey(dependencies, request)),
    getCrm: async ({ crmId }) => ({ crm: toCrmMessage(await getCrm(dependencies, crmId)) }),
    listRetentionPeriods: async () => ({ periods: await listRetentionPeriods(dependencies) }),
    createUser: async (request) => {
      const { user, created } = await createUser(dependencies, request);
      return { user: toUserMessage(user), created };
    },
    getUser: async (request) => ({ user: toUserMessage(await getUser(dependencies, request)) }),
    listUsers: async function* (request, signal) {
      for await (const { rows, nextCursor } of listUsers(dependencies, request, signal))
        yield { users: rows.map(toUserMessage), nextCursor };
    },
    updateUser: async (request) => ({ user: toUserMessage(await updateUser(dependencies, request)) }),
    deleteUser: async (request) => {
      await deleteUser(dependencies, request);
      return {};
    },
    requestVerification: async (request) => {
      await requestVerification(dependencies, request);
      return {};
    },
    getUserVerification: async (request) => ({ verification: await getUserVerification(dependencies, request) }),
    ...providerHandlers(dependencies),
    issueVerificationToken: async (request) => {
      const { token, expiresAt, user } = await issueVerificationToken(dependencies, request);
      return { token, expiresAt, user: toUserMessage(user), language: user.language };
    },
    getVerification: async ({ token }) => {
      const { state, ...verification } = await getVerification(dependencies, token);
      return { ...verification, state: VerificationState[state] };
    },
    confirmVerification: async ({ token }) => {
      const { state: _state, ...verification } = await confirmVerification(dependencies, token);
      return verification;
    },
  });
}

/** Those of accounts, providers and staff. */
function providerHandlers(dependencies: IdentityDependencies) {
  return {
    createAccount: async ({ crmId, account }) => {
      const given = account ?? { accountReference: '', ownerReference: '', branch: '' };
      const result = await createAccount(dependencies, { ...given, crmId });
      return { account: toAccountMessage(result.account), created: result.created };
    },
    getAccount: async (request) => ({ account: toAccountMessage(await getAccount(dependencies, request)) }),
    listAccounts: async function* (request, signal) {
      for await (const { rows, nextCursor } of listAccounts(dependencies, request, signal))
        yield { accounts: rows.map(toAccountMessage), nextCursor };
    },
    updateAccount: async (request) => ({ account: toAccountMessage(await updateAccount(dependencies, request)) }),
    deleteAccount: async (request) => {
      await deleteAccount(dependencies, request);
      return {};
    },
    createProvider: async (request) => {
      const { provider, created } = await createProvider(dependencies, request);
      return { provider: withoutNulls(provider), created };
    },
    getProvider: async (request) => ({
      provider: withoutNulls(await getProvider(dependencies, providerKeyOf(request))),
    }),
    listProviders: async function* (request, signal) {
      for await (const { rows, nextCursor } of listProviders(dependencies, request, signal))
        yield { providers: rows.map(withoutNulls), nextCursor };
    },
    listProviderReferences: async (request) => ({ providers: await listProviderReferences(dependencies, request) }),
    updateProvider: async (request) => ({ provider: withoutNulls(await updateProvider(dependencies, request)) }),
    deleteClosedProvider: async (request) => ({ deleted: await deleteProvider(dependencies, request) }),
    reopenProvider: async (request) => ({ provider: withoutNulls(await reopenProvider(dependencies, request)) }),
    listProviderRecipients: async (request) => ({
      recipients: (await listProviderRecipients(dependencies, request)).map(withoutNulls),
    }),
    getProviderRecipient: async (request) => ({
      recipient: withoutNulls(await getProviderRecipient(dependencies, request)),
    }),
    listStaff: async (request) => ({ users: (await listStaff(dependencies, request)).map(toUserMessage) }),
    addStaff: async (request) => {
      const { user, added } = await addStaff(dependencies, { ...request, member: memberOf(request) });
      return { user: toUserMessage(user), added };
    },
    removeStaff: async (request) => {
      await removeStaff(dependencies, request);
      return {};
    },
  } satisfies Partial<Handlers<typeof IdentityServiceService>>;
}

export function hostPublicProviderService(dependencies: IdentityDependencies): HostedService {
  return hostService(
    PublicProviderServiceService,
    callers.PublicProviderService,
    {
      getPublicProvider: async ({ providerId }) => ({
        provider: withoutNulls(await getPublicProvider(dependencies, providerId)),
      }),
    },
    { turnOf: ({ providerId }) => ({ owner: `pages of ${providerId}`, part: partOfPages }) },
  );
}

function providerKeyOf({ crmId, key }: GetProviderRequest): ProviderKey {
  return key?.$case === 'id' ? { crmId, id: key.value } : { crmId, reference: key?.value ?? '' };
}

function memberOf({ member }: AddStaffRequest): AddStaff['member'] {
  return member?.$case === 'invitation' ? { invitation: member.value } : { userReference: member?.value ?? '' };
}
