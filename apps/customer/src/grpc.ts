import {
  type Customer,
  CustomerServiceService,
  type Erasure,
  ErasureServiceService,
} from '@scheduling/contracts/customer/v1';
import { DomainError } from '@scheduling/errors';
import type { Broker } from '@scheduling/events';
import type { Loop } from '@scheduling/runtime';
import { type HostedService, hostOperatorService, hostService, metadataPairs, withoutNulls } from '@scheduling/rpc';
import { callers } from './callers.ts';
import { confirmCustomer } from './customer/confirm-customer.ts';
import { createCustomer } from './customer/create-customer.ts';
import type { CustomerDependencies, CustomerRow } from './customer/customer.ts';
import { getCustomer } from './customer/get-customer.ts';
import { listCustomerReferences } from './customer/list-customer-references.ts';
import { listCustomers } from './customer/list-customers.ts';
import { prepareCustomer } from './customer/prepare-customer.ts';
import { dropCustomer, settleCustomer } from './customer/provisional-customer.ts';
import { updateCustomer } from './customer/update-customer.ts';
import { deleteCustomer } from './erasure/delete-customer.ts';
import { eraseAddress, getAddressErasure, getErasureAddress } from './erasure/erase-address.ts';
import { getErasureNotice } from './erasure/get-erasure-notice.ts';
import { type ListedErasure, listErasures } from './erasure/list-erasures.ts';
import { replayErasures } from './erasure/replay-erasures.ts';
import { closeProvider } from './customer/close-provider.ts';

/** Maps protobuf messages to the use cases and back. */
export function hostCustomerService(dependencies: CustomerDependencies, driver: Pick<Loop, 'wake'>): HostedService {
  return hostService(
    CustomerServiceService,
    callers.CustomerService,
    {
      getCustomer: async ({ crmId, key }) => {
        const customer =
          key?.$case === 'reference'
            ? await getCustomer(dependencies, { ...key.value, crmId })
            : await getCustomer(dependencies, { crmId, id: key?.value ?? '' });
        return { customer: toMessage(customer) };
      },
      getRecipient: async ({ crmId, customerId }) => {
        const { userName, email, language, mobile, note } = await getCustomer(dependencies, { crmId, id: customerId });
        return withoutNulls({ name: userName, email, language, mobile, note });
      },
      listCustomers: async function* (request, signal) {
        const query = { ...request, metadata: metadataPairs(request.metadata) };
        for await (const { customers, nextCursor } of listCustomers(dependencies, query, signal))
          yield { customers: customers.map(toMessage), nextCursor };
      },
      listCustomerReferences: async (request) => ({ customers: await listCustomerReferences(dependencies, request) }),
      createCustomer: async ({ forBooking, ...request }) => {
        const content = { ...request, metadata: metadataPairs(request.metadata) };
        if (forBooking === true) {
          const { customer, provisional } = await prepareCustomer(dependencies, content);
          return { customer: toMessage(customer), created: false, provisional };
        }
        const { customer, created } = await createCustomer(dependencies, content);
        return { customer: toMessage(customer), created };
      },
      settleCustomer: async (request) => ({
        customer: toMessage(await settleCustomer(dependencies.database, request)),
      }),
      dropCustomer: async (request) => {
        await dropCustomer(dependencies.database, request);
        return {};
      },
      updateCustomer: async (request) => {
        const update = { ...request, metadata: metadataPairs(request.metadata) };
        return { customer: toMessage(await updateCustomer(dependencies, update)) };
      },
      confirmCustomer: async (request) => ({ customer: toMessage(await confirmCustomer(dependencies, request)) }),
      deleteCustomer: async (request) => {
        await deleteCustomer(dependencies, request);
        return {};
      },
      closeProvider: async (request) => {
        await closeProvider(dependencies, request);
        return {};
      },
      eraseAddress: async (request) => {
        const erasure = await eraseAddress(dependencies, request);
        driver.wake();
        return { erasure: withoutNulls(erasure) };
      },
      getAddressErasure: async ({ crmId, erasureId }) => ({
        erasure: withoutNulls(await getAddressErasure(dependencies.database.kysely, { crmId, id: erasureId })),
      }),
    },
    { light: ['getCustomer', 'getRecipient', 'createCustomer'] },
  );
}

/** Notification calls two methods of this service, operators the others. */
const { getErasureNotice: noticeMethod, getErasureAddress: addressMethod, ...operatorMethods } = ErasureServiceService;

export function hostErasureNoticeService(dependencies: CustomerDependencies): HostedService {
  return hostService({ getErasureNotice: noticeMethod, getErasureAddress: addressMethod }, callers.ErasureService, {
    getErasureNotice: (request) => getErasureNotice(dependencies, request),
    getErasureAddress: async ({ crmId, erasureId }) => ({
      email: await getErasureAddress(dependencies, { crmId, id: erasureId }),
    }),
  });
}

export function hostErasureService(dependencies: CustomerDependencies, broker: Broker): HostedService {
  return hostOperatorService(operatorMethods, {
    listErasures: async () => ({ erasures: (await listErasures(dependencies)).map(toErasureMessage) }),
    replayErasures: async ({ since }) => {
      if (since === undefined) throw new DomainError('erasure.since_missing');
      return replayErasures(dependencies.database, broker, since);
    },
  });
}

function toErasureMessage(row: ListedErasure): Erasure {
  return { ...withoutNulls(row), erasureId: row.id };
}

function toMessage(row: CustomerRow): Customer {
  const { metadata, ...customer } = row;
  return {
    ...withoutNulls(customer),
    customerReference: row.reference,
    metadata: metadata === null ? undefined : { pairs: metadata },
  };
}
