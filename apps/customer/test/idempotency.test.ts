import type { CreateCustomerRequest } from '@scheduling/contracts/customer/v1';
import { repeatable, testRepeatableOperations, withKey } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CustomerUnderTest, startCustomer } from './customer-under-test.ts';

let service: CustomerUnderTest;
beforeAll(async () => {
  service = await startCustomer();
});
afterAll(() => service[Symbol.asyncDispose]());

const newCustomer = (crmId: string): CreateCustomerRequest => ({ crmId, providerReference: 'p1', customerReference: randomUUID(), userName: 'Name' });

const customers = repeatable<CreateCustomerRequest>({
  name: 'create customer',
  prepare: async (crmId) => newCustomer(crmId),
  change: (request) => ({ ...request, userName: 'Other' }),
  send: (request) => service.customers.createCustomer(request),
  prepareRefused: async (crmId) => {
    const reference = `${randomUUID()}@crm`;
    const provider = { crmId, reference, ownerReference: 'owner@crm', accountReference: 'account@crm', name: 'Name' };
    return {
      request: { ...newCustomer(crmId), providerReference: reference },
      code: 'provider.not_found',
      repair: () => service.identity.createProvider(provider),
    };
  },
});

testRepeatableOperations([customers], () => ({ pool: service.database.pool, tables: ['customer', 'outbox'], crmIds: ['one', 'two'] }));

describe('a repeated request', () => {
  it('returns the first status and the customer in its current state', async () => {
    const [key, request] = [randomUUID(), newCustomer('one')];
    const create = () => service.customers.createCustomer(request);
    expect(await withKey(key, create)).toMatchObject({ created: true });
    const { crmId, providerReference, customerReference } = request;
    await service.customers.updateCustomer({ crmId, providerReference, customerReference, userName: 'Married', newCustomerReference: randomUUID() });
    expect(await withKey(key, create)).toMatchObject({ created: true, customer: { userName: 'Married' } });
  });
});
