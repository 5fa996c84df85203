import type { Service } from '@scheduling/runtime';

/**
 * The services that may call each method, by the names in their certificates; the diagram in docs/architecture.md shows
 * the same calls.
 */
export const callers = {
  CustomerService: {
    getCustomer: ['gateway', 'calendar'],
    getRecipient: ['notification', 'calendar'],
    listCustomers: ['gateway'],
    listCustomerReferences: ['webhook'],
    createCustomer: ['gateway', 'calendar'],
    settleCustomer: ['calendar'],
    dropCustomer: ['calendar'],
    updateCustomer: ['gateway'],
    confirmCustomer: ['calendar'],
    deleteCustomer: ['gateway'],
    closeProvider: ['calendar'],
    eraseAddress: ['gateway'],
    getAddressErasure: ['gateway'],
  },
  ErasureService: {
    getErasureNotice: ['notification'],
    getErasureAddress: ['notification'],
  },
} satisfies Record<string, Record<string, Service[]>>;
