import { patiently } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, invite } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
  await service.admin.createCrm({ crmId: 'one' });
  await service.admin.createCrm({ crmId: 'two' });
  await createProvider(service, 'one');
  await createProvider(service, 'two');
});
afterAll(() => service[Symbol.asyncDispose]());

const provider = { crmId: 'one', providerReference: 'provider@crm' };
const addByReference = (userReference: string) =>
  service.identity.addStaff({ ...provider, member: { $case: 'userReference', value: userReference } });
const listed = async () => (await service.identity.listStaff(provider)).users.map(({ lastName }) => lastName);

describe('the staff of a provider', () => {
  it('is its owner, then the added users, in that order', async () => {
    const user = await createUser(service, 'one', 'added');
    expect(await addByReference('added@crm')).toEqual({ user, added: true });
    await invite(service, 'one', 'invited');
    expect(await listed()).toEqual(['owner', 'added', 'invited']);
  });

  it('does not change when a member or the owner is added again', async () => {
    const before = await listed();
    expect((await addByReference('added@crm')).added).toBe(false);
    expect((await addByReference('owner@crm')).added).toBe(false);
    expect((await invite(service, 'one', 'invited')).added).toBe(false);
    expect(await listed()).toEqual(before);
  });

  it('loses a removed member, who can be added again', async () => {
    await createUser(service, 'one', 'leaving');
    await addByReference('leaving@crm');
    await service.identity.removeStaff({ ...provider, userReference: 'leaving@crm' });
    expect(await listed()).not.toContain('leaving');
    const again = service.identity.removeStaff({ ...provider, userReference: 'leaving@crm' });
    expect(await refusal(again)).toMatchObject({ category: 'not_found', code: 'staff.not_found' });
    expect((await addByReference('leaving@crm')).added).toBe(true);
  });

  it('never loses the owner', async () => {
    const removal = service.identity.removeStaff({ ...provider, userReference: 'owner@crm' });
    expect(await refusal(removal)).toMatchObject({ category: 'conflict', code: 'staff.owner' });
    expect((await listed())[0]).toBe('owner');
  });

  it('is not found without its provider, nor a member without a user', async () => {
    const absent = { crmId: 'one', providerReference: 'absent@crm' };
    const noProvider = { category: 'not_found', code: 'provider.not_found' };
    expect(await refusal(service.identity.listStaff(absent))).toMatchObject(noProvider);
    expect(await refusal(service.identity.removeStaff({ ...absent, userReference: 'owner@crm' }))).toMatchObject(
      noProvider,
    );
    const member = { $case: 'userReference', value: 'owner@crm' } as const;
    expect(await refusal(service.identity.addStaff({ ...absent, member }))).toMatchObject(noProvider);
    expect(await refusal(addByReference('absent@crm'))).toMatchObject({
      category: 'not_found',
      code: 'user.not_found',
    });
    expect(await refusal(service.identity.addStaff(provider))).toMatchObject({ code: 'user.not_found' });
    const removal = service.identity.removeStaff({ ...provider, userReference: 'absent@crm' });
    expect(await refusal(removal)).toMatchObject({ code: 'staff.not_found' });
  });
});

describe('an invitation', () => {
  it('creates a user without a reference', async () => {
    const { user, added } = await invite(service, 'one', 'newcomer');
    expect(added).toBe(true);
    expect(user).toMatchObject({
      reference: undefined,
      email: 'newcomer@one.example',
      username: 'newcomer-one',
      lastName: 'newcomer',
    });
  });

  it('finds the person again by the address, even after they got a reference', async () => {
    const { user: invited } = await invite(service, 'one', 'person');
    expect((await invite(service, 'one', 'person', { email: 'PERSON@one.example', username: 'new' })).user).toEqual(
      invited,
    );
    const adopted = await createUser(service, 'one', 'person');
    expect(adopted.id).toBe(invited?.id);
    expect(await invite(service, 'one', 'person')).toEqual({ user: adopted, added: false });
  });

  it('adds a user of the same CRM who has the address', async () => {
    const user = await createUser(service, 'one', 'colleague');
    expect(await invite(service, 'one', 'colleague')).toEqual({ user, added: true });
  });

  it('never matches a user of another CRM', async () => {
    await createUser(service, 'two', 'foreign');
    await invite(service, 'two', 'foreign-invited');
    const before = await listed();
    for (const email of ['foreign@two.example', 'foreign-invited@two.example']) {
      expect(await refusal(invite(service, 'one', 'x', { email }))).toMatchObject({
        category: 'conflict',
        code: 'user.email_taken',
        message: 'User with given email already exists.',
      });
    }
    expect(await listed()).toEqual(before);
  });

  it('never matches a user by a derived address', async () => {
    await createUser(service, 'one', 'shared');
    const derived = {
      crmId: 'one',
      reference: 'shared-2@crm',
      email: 'shared@one.example',
      username: 'shared-2',
      lastName: 'Shared',
    };
    expect((await service.identity.createUser(derived)).user?.email).toBe('shared1@one.example');
    expect(await refusal(invite(service, 'one', 'shared1'))).toMatchObject({ code: 'user.email_taken' });
  });

  it('is rejected when the username is taken', async () => {
    await createUser(service, 'one', 'name');
    const taken = {
      category: 'conflict',
      code: 'user.username_taken',
      message: 'User with given username already exists.',
    };
    expect(await refusal(invite(service, 'one', 'other', { username: 'NAME-one' }))).toMatchObject(taken);
  });

  it('creates one user for twenty concurrent requests', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => patiently(() => invite(service, 'one', 'crowd'))),
    );
    expect(answers.filter(({ added }) => added)).toHaveLength(1);
    expect(new Set(answers.map(({ user }) => user?.id)).size).toBe(1);
  });
});
