import { events } from '@scheduling/events';
import { eventually } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, invite } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
});
afterAll(() => service[Symbol.asyncDispose]());

const account = { accountReference: 'account@crm', ownerReference: 'owner@crm', branch: 'misc' };
const codeOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).code;
const deleteAccount = (crmId: string) => service.identity.deleteAccount({ crmId, reference: 'account@crm' });

async function newCrm(crmId: string): Promise<{ id: string; version: number }> {
  await service.admin.createCrm({ crmId });
  const { id: providerId, version } = await createProvider(service, crmId);
  return { id: providerId, version };
}

describe('an account', () => {
  it('is deleted when it has no providers, and its reference is free', async () => {
    const { id: providerId, version } = await newCrm('account');
    const refused = await refusal(deleteAccount('account'));
    expect(refused).toMatchObject({ category: 'conflict', code: 'account.in_use' });
    expect(refused.message).toContain('provider@crm');
    await service.identity.deleteClosedProvider({ crmId: 'account', providerId, version });
    await deleteAccount('account');
    expect(await codeOf(deleteAccount('account'))).toBe('account.not_found');
    expect(await codeOf(service.identity.getAccount({ crmId: 'account', reference: 'account@crm' }))).toBe(
      'account.not_found',
    );
    const { created } = await service.identity.createAccount({ crmId: 'account', account });
    expect(created).toBe(true);
  });

  it('is not that of another CRM', async () => {
    await newCrm('mine');
    await service.admin.createCrm({ crmId: 'theirs' });
    expect(await codeOf(deleteAccount('theirs'))).toBe('account.not_found');
    expect((await service.identity.getAccount({ crmId: 'mine', reference: 'account@crm' })).account).toBeDefined();
  });

  it('has the provider that is created at the same moment, or is deleted before', async () => {
    await service.admin.createCrm({ crmId: 'race' });
    await createUser(service, 'race', 'owner');
    const outcomes = new Set<string>();
    for (let round = 0; round < 60; round += 1) {
      await service.identity.createAccount({ crmId: 'race', account });
      const provider = { crmId: 'race', reference: `p${round}`, name: 'P', ...account };
      const creation = service.otherReplica.createProvider(provider);
      // Later ones meet the creation further on.
      for (let calls = round % 4; calls > 0; calls -= 1) await service.identity.getCrm({ crmId: 'race' });
      const [created, deleted] = await Promise.all([
        creation.then(
          () => 'created',
          (error: { code: string }) => error.code,
        ),
        deleteAccount('race').then(
          () => 'deleted',
          (error: { code: string }) => error.code,
        ),
      ]);
      outcomes.add(`${created} ${deleted}`);
      if (created === 'created') {
        const { provider: made } = await service.identity.getProvider({
          crmId: 'race',
          key: { $case: 'reference', value: provider.reference },
        });
        await service.identity.deleteClosedProvider({ crmId: 'race', providerId: made!.id, version: made!.version });
      }
    }
    for (const outcome of outcomes)
      expect(['created account.in_use', 'provider.account_not_found deleted']).toContain(outcome);
  });

  it('is created once by concurrent requests, also while it is deleted', async () => {
    await service.admin.createCrm({ crmId: 'again' });
    await createUser(service, 'again', 'owner');
    for (let round = 0; round < 30; round += 1) {
      await service.identity.createAccount({ crmId: 'again', account });
      const [, ...answers] = await Promise.all([
        deleteAccount('again'),
        service.identity.createAccount({ crmId: 'again', account }),
        service.otherReplica.createAccount({ crmId: 'again', account }),
      ]);
      expect(answers.every(({ account: answered }) => answered!.accountReference === 'account@crm')).toBe(true);
      await deleteAccount('again').catch(() => undefined);
    }
  });
});

describe('a provider', () => {
  it('is deleted in the version that nothing refers to, with the access of its staff, and there is an event', async () => {
    const { id: providerId, version } = await newCrm('provider');
    await invite(service, 'provider', 'invited');
    expect(
      await service.identity.deleteClosedProvider({ crmId: 'provider', providerId, version: version + 1 }),
    ).toEqual({
      deleted: false,
    });
    const closed = { crmId: 'provider', providerId, closedVersion: version };
    const { provider } = await service.identity.reopenProvider(closed);
    expect(provider!.version).toBe(version + 1);
    expect((await service.identity.reopenProvider(closed)).provider).toEqual(provider);
    expect(await service.identity.deleteClosedProvider({ crmId: 'provider', providerId, version })).toEqual({
      deleted: false,
    });
    expect(
      await service.identity.deleteClosedProvider({ crmId: 'provider', providerId, version: version + 1 }),
    ).toEqual({
      deleted: true,
    });
    expect(await codeOf(service.identity.reopenProvider(closed))).toBe('provider.not_found');
    const { kysely } = service.database;
    expect(await kysely.selectFrom('providerStaff').selectAll().where('crmId', '=', 'provider').execute()).toEqual([]);
    expect(await recordedEvents(service.database, events.providerDeleted)).toContainEqual({
      crmId: 'provider',
      providerId,
    });
    // The invited person stays, and gets a reference as before.
    expect((await createUser(service, 'provider', 'invited')).reference).toBe('invited@crm');
  });

  it('of another CRM is neither deleted nor opened', async () => {
    const { id: providerId, version } = await newCrm('owning');
    await service.admin.createCrm({ crmId: 'foreign' });
    const key = { crmId: 'foreign', providerId };
    expect(await codeOf(service.identity.deleteClosedProvider({ ...key, version }))).toBe('provider.not_found');
    expect(await codeOf(service.identity.reopenProvider({ ...key, closedVersion: version }))).toBe(
      'provider.not_found',
    );
    const { provider } = await service.identity.getProvider({
      crmId: 'owning',
      key: { $case: 'id', value: providerId },
    });
    expect(provider!.version).toBe(version);
  });

  it('gets no staff while it is deleted', async () => {
    const { id, version } = await newCrm('staffed');
    await createUser(service, 'staffed', 'helper');
    let key = { providerId: id, version };
    for (let round = 0; round < 30; round += 1) {
      const [added] = await Promise.all([
        service.otherReplica
          .addStaff({
            crmId: 'staffed',
            providerReference: 'provider@crm',
            member: { $case: 'userReference', value: 'helper@crm' },
          })
          .then(
            () => 'added',
            (error: { code: string }) => error.code,
          ),
        service.identity.deleteClosedProvider({ crmId: 'staffed', ...key }),
      ]);
      expect(['added', 'provider.not_found']).toContain(added);
      const { provider } = await service.identity.createProvider({
        crmId: 'staffed',
        reference: 'provider@crm',
        name: 'P',
        ...account,
      });
      key = { providerId: provider!.id, version: provider!.version };
    }
  });

  it('and its account are in the way of the deletion of their owner until they are deleted', async () => {
    const { id: providerId, version } = await newCrm('chain');
    const deleteOwner = () => service.identity.deleteUser({ crmId: 'chain', reference: 'owner@crm' });
    expect(await codeOf(deleteOwner())).toBe('user.owner');
    await service.identity.deleteClosedProvider({ crmId: 'chain', providerId, version });
    expect((await refusal(deleteOwner())).message).toContain('account account@crm');
    await deleteAccount('chain');
    await deleteOwner();
    for (const table of ['appUser', 'account', 'provider', 'providerStaff'] as const)
      expect(
        await service.database.kysely.selectFrom(table).selectAll().where('crmId', '=', 'chain').execute(),
      ).toEqual([]);
  });
});

it('on request, the deletions of providers are published again, but not of those that a backup brought back', async () => {
  const unsent = () => service.database.kysely.selectFrom('outbox').select('id').where('sentAt', 'is', null).execute();
  // Deletions of the tests before are published by then, and so before the time of the backup.
  await eventually(async () => expect(await unsent()).toEqual([]));
  const [gone, back] = [await newCrm('gone'), await newCrm('back')];
  const providers = () => service.database.kysely.selectFrom('provider');
  const stored = await providers().selectAll().where('id', '=', back.id).executeTakeFirstOrThrow();
  const since = new Date();
  for (const [crmId, { id: providerId, version }] of [['gone', gone] as const, ['back', back] as const])
    await service.identity.deleteClosedProvider({ crmId, providerId, version });
  await service.database.kysely.insertInto('provider').values(stored).execute();
  const deletionsOf = async (id: string) =>
    (await recordedEvents(service.database, events.providerDeleted)).filter(({ providerId }) => providerId === id);
  // The second time, the events of the first are there, too.
  for (const times of [1, 2]) {
    await eventually(async () => expect(await unsent()).toEqual([]));
    expect(await service.admin.replayProviderDeletions({ since })).toEqual({
      replayed: 1,
      existing: [{ crmId: 'back', providerId: back.id, reference: 'provider@crm' }],
      eventsReachBackTo: expect.any(Date) as Date,
      continuation: undefined,
    });
    expect(await deletionsOf(gone.id)).toHaveLength(1 + times);
  }
  expect(await deletionsOf(back.id)).toHaveLength(1);
  expect(await providers().selectAll().where('id', '=', back.id).executeTakeFirst()).toEqual(stored);
  const { entries } = await service.audit.listAuditEntries({});
  expect(entries[0]).toMatchObject({ action: 'provider-deletions.replay', target: since.toISOString() });
  expect(await codeOf(service.admin.replayProviderDeletions({}))).toBe('erasure.since_missing');
});
