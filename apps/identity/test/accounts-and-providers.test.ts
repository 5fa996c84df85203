import { events } from '@scheduling/events';
import { patiently } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createUser } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
  await service.admin.createCrm({ crmId: 'one', timeZone: 'Europe/Zurich' });
  await createUser(service, 'one', 'owner');
});
afterAll(() => service[Symbol.asyncDispose]());

const createAccount = (
  account: Partial<Parameters<IdentityUnderTest['identity']['createAccount']>[0]['account'] & object>,
) =>
  service.identity.createAccount({
    crmId: 'one',
    account: { accountReference: 'account@crm', ownerReference: 'owner@crm', branch: 'misc', ...account },
  });

describe('an account', () => {
  it('is created with all its fields and can be found', async () => {
    const account = {
      accountReference: 'full@crm',
      ownerReference: 'owner@crm',
      branch: 'sports-and-leisure',
      invoiceAddress: { city: 'Köln', countryCode: 'DE', street: 'Ring', number: '1a', zip: '50667' },
      invoiceContactName: 'Contact',
      invoiceCompanyName: 'Company',
      invoiceTaxId: 'DE1',
      email: 'invoice@one.example',
    };
    expect(await createAccount(account)).toEqual({ account, created: true });
    expect(await service.identity.getAccount({ crmId: 'one', reference: 'full@crm' })).toEqual({ account });
  });

  it.each(['real-estate', 'facilities', 'handyman', 'sports-and-leisure', 'misc'])(
    'has the branch %s',
    async (branch) => {
      const { account } = await createAccount({ accountReference: `${branch}@crm`, branch });
      expect(account?.branch).toBe(branch);
    },
  );

  it('is returned unchanged when its reference is known, whatever else is given', async () => {
    const { account } = await createAccount({ accountReference: 'known@crm', email: 'first@one.example' });
    const again = await createAccount({
      accountReference: 'known@crm',
      email: 'second@one.example',
      branch: 'none',
      ownerReference: 'nobody@crm',
    });
    expect(again).toEqual({ account, created: false });
  });

  it('is rejected for its branch and its owner, in this order and with the wording of the contract', async () => {
    const faults = { accountReference: 'new@crm', branch: 'none', ownerReference: 'nobody@crm' };
    const refusals = [
      await refusal(createAccount(faults)),
      await refusal(createAccount({ ...faults, branch: 'misc' })),
    ];
    expect(refusals.map(({ category, code, message }) => ({ category, code, message }))).toEqual([
      { category: 'not_found', code: 'branch.unknown', message: 'Unable to find specified branch. Was none' },
      { category: 'not_found', code: 'account.owner_not_found', message: 'no user found for ownerReference' },
    ]);
  });

  it('is not found when there is none', async () => {
    const absent = service.identity.getAccount({ crmId: 'one', reference: 'absent@crm' });
    expect(await refusal(absent)).toMatchObject({ category: 'not_found', code: 'account.not_found' });
  });

  it('is created once by twenty concurrent requests', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        patiently(() => createAccount({ accountReference: 'race@crm', email: `${index}@one.example` })),
      ),
    );
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(answers.map(({ account }) => account?.email)).size).toBe(1);
  });
});

describe('a provider', () => {
  const createProvider = (changes: Partial<Parameters<IdentityUnderTest['identity']['createProvider']>[0]>) =>
    service.identity.createProvider({
      crmId: 'one',
      reference: 'provider',
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: 'Provider',
      ...changes,
    });

  beforeAll(() => createAccount({}));

  it('is created with all its fields, and found by its reference and its id', async () => {
    const fields = {
      reference: 'full',
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: 'Full',
      email: 'full@one.example',
      mobile: '1',
      phone: '2',
      impressum: 'line 1\nline 2',
      branch: 'handyman',
      subbranch: 'roofs',
      timeZone: 'America/New_York',
    };
    const { provider, created } = await createProvider(fields);
    expect(created).toBe(true);
    expect(provider).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), version: 1, ...fields });
    const byReference = await service.identity.getProvider({
      crmId: 'one',
      key: { $case: 'reference', value: 'full' },
    });
    const byId = await service.identity.getProvider({ crmId: 'one', key: { $case: 'id', value: provider!.id } });
    expect([byReference.provider, byId.provider]).toEqual([provider, provider]);
    expect(await recordedEvents(service.database, events.providerChanged)).toContainEqual({
      crmId: 'one',
      providerId: provider?.id,
      version: 1,
    });
  });

  it('has the time zone of its CRM when none is given', async () => {
    expect((await createProvider({ reference: 'zone' })).provider?.timeZone).toBe('Europe/Zurich');
  });

  it('is returned unchanged and without an event when its reference is known', async () => {
    const { provider } = await createProvider({ reference: 'known' });
    const before = await recordedEvents(service.database, events.providerChanged);
    const again = await createProvider({
      reference: 'known',
      name: 'Other',
      ownerReference: 'nobody@crm',
      timeZone: 'Mars/Base',
    });
    expect(again).toEqual({ provider, created: false });
    expect(await recordedEvents(service.database, events.providerChanged)).toEqual(before);
  });

  it('is rejected for its time zone, its branch, its owner and its account, in this order', async () => {
    const faults = {
      reference: 'new',
      timeZone: '+01:00',
      branch: 'none',
      ownerReference: 'nobody@crm',
      accountReference: 'none@crm',
    };
    const refusals = [
      await refusal(createProvider(faults)),
      await refusal(createProvider({ ...faults, timeZone: undefined })),
      await refusal(createProvider({ ...faults, timeZone: undefined, branch: undefined })),
      await refusal(createProvider({ ...faults, timeZone: undefined, branch: undefined, ownerReference: 'owner@crm' })),
    ];
    expect(refusals.map(({ category, code, message }) => ({ category, code, message }))).toEqual([
      { category: 'invalid', code: 'provider.time_zone_unknown', message: 'There is no time zone with this name.' },
      { category: 'not_found', code: 'branch.unknown', message: 'Unable to find specified branch. Was none' },
      { category: 'not_found', code: 'provider.owner_not_found', message: 'no user found for ownerReference' },
      { category: 'not_found', code: 'provider.account_not_found', message: 'no account found for accountReference' },
    ]);
    expect(refusals[0]?.errors).toMatchObject([{ pointer: '/timeZone' }]);
  });

  it('is not found when there is none, nor by an id that is not a uuid', async () => {
    const keys = [
      { $case: 'reference', value: 'absent' },
      { $case: 'id', value: 'absent' },
      { $case: 'id', value: '0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77' },
    ] as const;
    for (const key of keys) {
      expect(await refusal(service.identity.getProvider({ crmId: 'one', key }))).toMatchObject({
        category: 'not_found',
        code: 'provider.not_found',
      });
    }
  });

  it('is created once by twenty concurrent requests, with one event', async () => {
    const before = (await recordedEvents(service.database, events.providerChanged)).length;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        patiently(() => createProvider({ reference: 'race', name: `Name ${index}` })),
      ),
    );
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(answers.map(({ provider }) => JSON.stringify(provider))).size).toBe(1);
    expect(await recordedEvents(service.database, events.providerChanged)).toHaveLength(before + 1);
  });
});
