import type { Service } from '@scheduling/runtime';

/**
 * The services that may call each method, by the names in their certificates; the diagram in docs/architecture.md shows
 * the same calls.
 */
export const callers = {
  IdentityService: {
    authenticateKey: ['gateway'],
    getCrm: ['calendar', 'customer', 'notification'],
    listRetentionPeriods: ['calendar'],
    createUser: ['gateway'],
    getUser: ['gateway'],
    listUsers: ['gateway'],
    updateUser: ['gateway'],
    deleteUser: ['gateway'],
    requestVerification: ['gateway'],
    getUserVerification: ['gateway'],
    createAccount: ['gateway'],
    getAccount: ['gateway'],
    listAccounts: ['gateway'],
    updateAccount: ['gateway'],
    deleteAccount: ['gateway'],
    createProvider: ['gateway'],
    getProvider: ['gateway', 'calendar', 'customer', 'notification', 'webhook'],
    listProviders: ['gateway'],
    listProviderReferences: ['webhook'],
    updateProvider: ['gateway'],
    deleteClosedProvider: ['calendar'],
    reopenProvider: ['calendar', 'customer'],
    listProviderRecipients: ['notification'],
    getProviderRecipient: ['calendar', 'notification'],
    listStaff: ['gateway'],
    addStaff: ['gateway'],
    removeStaff: ['gateway'],
    issueVerificationToken: ['notification'],
    getVerification: ['gateway'],
    confirmVerification: ['gateway'],
  },
  PublicProviderService: {
    getPublicProvider: ['page'],
  },
} satisfies Record<string, Record<string, Service[]>>;
