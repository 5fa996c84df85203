import type { CreateCustomerRequest } from '@scheduling/contracts/customer/v1';
import { repeatable, testRepeatableOperations, withKey } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CustomerUnderTest, startCustomer } from './customer-under-test.ts';

let service: CustomerUnderTest;
beforeAll(async () => {
  service = await startCustomer();
});
afterAll(() => service[Symbol.asyncDispose]());

const newCustomer = (crmId: string): CreateCustomerRequest => ({
  crmId,
  providerReference: 'p1',
  customerReference: randomUUID(),
  userName: 'Name',
  metadata: { pairs: { tier: 'gold' } },
});

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

testRepeatableOperations([customers], () => ({
  pool: service.database.pool,
  tables: ['customer', 'outbox'],
  crmIds: ['one', 'two'],
}));

describe('a repeated request', () => {
  it('for an erasure returns the erasure, and does not make it search again', async () => {
    const [key, email] = [randomUUID(), `${randomUUID()}@customers.example`];
    const request = (address: string) =>
      withKey(key, () => service.customers.eraseAddress({ crmId: 'one', email: address }));
    const { erasure } = await request(email);
    // As if the driver would look after it again in a minute.
    await sql`UPDATE erasure SET published_at = now() + interval '60 seconds' WHERE id = ${erasure!.id}`.execute(
      service.database.kysely,
    );
    const searchesAgain = async (): Promise<boolean> => {
      const { rows } = await sql<{
        due: boolean;
      }>`SELECT published_at < now() + interval '30 seconds' AS due FROM erasure WHERE address = ${email}`.execute(
        service.database.kysely,
      );
      expect(rows).toHaveLength(1);
      return rows[0]!.due;
    };
    expect(await request(email)).toEqual({ erasure });
    expect(await searchesAgain()).toBe(false);
    await expect(request('other@customers.example')).rejects.toMatchObject({ code: 'idempotency_key.reused' });
    expect(
      await withKey(randomUUID(), () => service.customers.eraseAddress({ crmId: 'one', email: email.toUpperCase() })),
    ).toEqual({ erasure });
    expect(await searchesAgain()).toBe(true);
  });

  it('returns the first status and the customer in its current state', async () => {
    const [key, request] = [randomUUID(), newCustomer('one')];
    const create = () => service.customers.createCustomer(request);
    expect(await withKey(key, create)).toMatchObject({ created: true });
    const { crmId, providerReference, customerReference } = request;
    await service.customers.updateCustomer({ crmId, providerReference, customerReference, userName: 'Married' });
    expect(await withKey(key, create)).toMatchObject({ created: true, customer: { userName: 'Married' } });
  });
});
