import type { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { CustomerChange } from '@scheduling/contracts/events/v1';
import { events as catalogue } from '@scheduling/events';
import type { ClientOf } from '@scheduling/rpc';
import { runWithContext } from '@scheduling/runtime';
import { patiently } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CustomerUnderTest, startCustomer } from './customer-under-test.ts';

const { customerChanged } = catalogue;
let service: CustomerUnderTest;
let customers: ClientOf<typeof CustomerServiceService>;

beforeAll(async () => {
  service = await startCustomer();
  customers = service.customers;
});
afterAll(() => service[Symbol.asyncDispose]());

const events = async () => (await service.database.kysely.selectFrom('outbox').select('id').execute()).length;
const key = (customerReference: string, providerReference = 'p1', crmId = 'one') => ({
  crmId,
  providerReference,
  customerReference,
});
const get = ({ crmId, ...value }: ReturnType<typeof key>) =>
  customers.getCustomer({ crmId, key: { $case: 'reference', value } });

describe('a customer', () => {
  it('is created with all fields and found by reference and id', async () => {
    const fields = { userName: 'Ada', email: 'ada@example.com', mobile: '+49 151', note: 'VIP', language: 'en' };
    const { customer, created } = await customers.createCustomer({ ...key('ada'), ...fields });
    expect(created).toBe(true);
    expect(customer).toMatchObject({ ...fields, customerReference: 'ada', providerReference: 'p1', version: 1 });
    expect((await get(key('ada'))).customer).toEqual(customer);
    expect((await customers.getCustomer({ crmId: 'one', key: { $case: 'id', value: customer!.id } })).customer).toEqual(
      customer,
    );
  });

  it('without the optional fields, which may be empty, is found the same', async () => {
    const { customer } = await customers.createCustomer({ ...key('bare'), userName: 'Bare', email: '', note: '' });
    expect(customer).toMatchObject({
      userName: 'Bare',
      email: undefined,
      mobile: undefined,
      note: undefined,
      language: undefined,
    });
    expect((await get(key('bare'))).customer).toEqual(customer);
  });

  it('is reported by one event for each version', async () => {
    const { customer } = await customers.createCustomer({ ...key('reported'), userName: 'Reported' });
    await customers.createCustomer({ ...key('reported'), userName: 'Again' });
    await runWithContext({ requestId: 'request', actor: 'crm:sk_123456789' }, () =>
      customers.updateCustomer({ ...key('reported'), userName: 'Renamed' }),
    );
    const rows = await service.database.kysely
      .selectFrom('outbox')
      .select('data')
      .where('subject', '=', customerChanged.subject)
      .orderBy('id')
      .execute();
    const reports = rows.filter(({ data }) => data!['customerId'] === customer!.id);
    const ids = { crmId: 'one', customerId: customer!.id, providerId: customer!.providerId };
    expect(reports.map(({ data }) => data)).toEqual([
      { ...ids, version: 1, change: CustomerChange.CREATED, actor: 'service' },
      { ...ids, version: 2, change: CustomerChange.UPDATED, actor: 'crm:sk_123456789' },
    ]);
  });

  it('that exists is returned unchanged', async () => {
    await customers.createCustomer({ ...key('known'), userName: 'First' });
    const again = await customers.createCustomer({ ...key('known'), userName: 'Second', email: 'second@example.com' });
    expect(again.created).toBe(false);
    expect(again.customer).toMatchObject({ userName: 'First', email: undefined });
  });

  it('is created once by twenty concurrent requests', async () => {
    const before = await events();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        patiently(() => customers.createCustomer({ ...key('race'), userName: `Racer ${index}` })),
      ),
    );
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(answers.map(({ customer }) => customer!.id)).size).toBe(1);
    expect(await events()).toBe(before + 1);
  });

  it('is invisible to another provider and another CRM', async () => {
    const { customer } = await customers.createCustomer({ ...key('hidden'), userName: 'Hidden' });
    const absent = { category: 'not_found', code: 'customer.not_found' };
    await expect(get(key('hidden', 'p2'))).rejects.toMatchObject(absent);
    await expect(get(key('hidden', 'p1', 'two'))).rejects.toMatchObject(absent);
    await expect(
      customers.getCustomer({ crmId: 'two', key: { $case: 'id', value: customer!.id } }),
    ).rejects.toMatchObject(absent);
    await expect(customers.updateCustomer({ ...key('hidden', 'p1', 'two'), userName: 'Mine' })).rejects.toMatchObject(
      absent,
    );
    expect((await customers.createCustomer({ ...key('hidden', 'p2'), userName: 'Other' })).created).toBe(true);
  });

  it('requires a provider of its CRM', async () => {
    const absent = { category: 'not_found', code: 'provider.not_found' };
    await expect(customers.createCustomer({ ...key('lost', 'p2', 'two'), userName: 'Lost' })).rejects.toMatchObject(
      absent,
    );
    await expect(customers.createCustomer({ ...key('lost', 'nowhere'), userName: 'Lost' })).rejects.toMatchObject(
      absent,
    );
  });

  it('with a text that cannot be stored is rejected, and those created at the same moment are not', async () => {
    const requests = ['a', 'b\0', 'c', 'd'].map((userName, index) =>
      customers.createCustomer({ ...key(`moment-${index}`), userName }),
    );
    const [, unstorable, ...others] = await Promise.allSettled(requests);
    expect(unstorable).toMatchObject({ status: 'rejected', reason: { code: 'text.invalid' } });
    expect(others).toMatchObject([{ value: { created: true } }, { value: { created: true } }]);
  });

  it('changes only in the given fields; an empty string clears a field', async () => {
    await customers.createCustomer({ ...key('change'), userName: 'Before', email: 'before@example.com', note: 'note' });
    const { customer } = await customers.updateCustomer({ ...key('change'), userName: 'After', note: '' });
    expect(customer).toMatchObject({ userName: 'After', email: 'before@example.com', note: undefined, version: 2 });
  });

  it('keeps its reference if another one is taken, or calendar does not know of it', async () => {
    await customers.createCustomer({ ...key('old'), userName: 'Mover' });
    await customers.createCustomer({ ...key('taken'), userName: 'Sitter' });
    await expect(customers.updateCustomer({ ...key('old'), newCustomerReference: 'taken' })).rejects.toMatchObject({
      category: 'conflict',
      code: 'customer.reference_taken',
    });
    await expect(
      customers.updateCustomer({ ...key('old'), newCustomerReference: 'new', userName: 'Moved' }),
    ).rejects.toMatchObject({ category: 'unavailable' });
    await expect(get(key('new'))).rejects.toMatchObject({ code: 'customer.not_found' });
    expect((await get(key('old'))).customer).toMatchObject({ userName: 'Mover', version: 1 });
  });
});

it('customers can be created and read while a newer version adds a column', async () => {
  const createAndGet = async (reference: string) => {
    const { customer } = await customers.createCustomer({ ...key(reference), userName: 'Name' });
    expect((await get(key(reference))).customer).toEqual(customer);
  };
  await createAndGet('column-before');
  await sql`ALTER TABLE customer ADD COLUMN priority integer NOT NULL DEFAULT 1`.execute(service.database.kysely);
  await createAndGet('column-after');
});

it('a customer of a known provider can be created while identity does not respond', async () => {
  await customers.createCustomer({ ...key('before'), userName: 'Before' });
  await service.stopIdentity();
  expect(await customers.createCustomer({ ...key('meanwhile'), userName: 'Meanwhile' })).toMatchObject({
    created: true,
  });
  const unknown = customers.createCustomer({ ...key('meanwhile', 'never-used'), userName: 'Meanwhile' });
  await expect(unknown).rejects.toMatchObject({ category: 'unavailable' });
});
