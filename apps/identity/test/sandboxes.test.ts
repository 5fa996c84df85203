import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, invite } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
  await service.admin.createCrm({ crmId: 'real' });
  await service.admin.createCrm({ crmId: 'sandbox', sandbox: true });
  await service.admin.createCrm({ crmId: 'other', sandbox: true });
});
afterAll(() => service[Symbol.asyncDispose]());

const create = (crmId: string, reference: string, names: { email: string; username: string }) =>
  service.identity.createUser({ crmId, reference: `${reference}@crm`, lastName: reference, ...names });

describe('a sandbox', () => {
  it('is one for ever', async () => {
    await service.admin.updateCrm({ crmId: 'sandbox', name: 'Renamed' });
    expect((await service.identity.getCrm({ crmId: 'sandbox' })).crm).toMatchObject({ name: 'Renamed', sandbox: true });
    expect((await service.identity.getCrm({ crmId: 'real' })).crm).toMatchObject({ sandbox: false });
  });

  it('has login names of its own: neither another CRM nor another sandbox is without an address or a username because of it', async () => {
    const names = { email: 'anna@one.example', username: 'anna' };
    for (const crmId of ['sandbox', 'other', 'real']) {
      const { user, created } = await create(crmId, 'anna', names);
      expect(created).toBe(true);
      expect(user).toMatchObject(names);
    }
  });

  it('applies the rules for login names within itself', async () => {
    await create('sandbox', 'berta', { email: 'berta@one.example', username: 'berta' });
    const { user } = await create('sandbox', 'second', { email: 'BERTA@one.example', username: 'second' });
    expect(user!.email).toBe('BERTA1@one.example');
    const { user: third } = await create('sandbox', 'third', { email: 'berta@one.example', username: 'third' });
    expect(third!.email).toBe('berta2@one.example');
    expect(await refusal(create('sandbox', 'fourth', { email: 'd@one.example', username: 'Berta' }))).toMatchObject({
      code: 'user.username_taken',
    });

    const update = (names: { email?: string; username?: string }) =>
      service.identity.updateUser({ crmId: 'sandbox', reference: 'second@crm', ...names });
    expect(await refusal(update({ email: 'berta@one.example' }))).toMatchObject({ code: 'user.email_taken' });
    expect(await refusal(update({ username: 'berta' }))).toMatchObject({ code: 'user.username_taken' });
    expect((await update({ username: 'Second' })).user).toMatchObject({ username: 'Second' });
  });

  it('takes an address that a real CRM uses, in an update and in an invitation, too', async () => {
    await create('real', 'clara', { email: 'clara@one.example', username: 'clara' });
    await create('real', 'dora', { email: 'dora@one.example', username: 'dora' });
    await create('sandbox', 'clara', { email: 'before@one.example', username: 'before' });
    const changed = { email: 'clara@one.example', username: 'clara' };
    expect(
      (await service.identity.updateUser({ crmId: 'sandbox', reference: 'clara@crm', ...changed })).user,
    ).toMatchObject(changed);

    await createProvider(service, 'sandbox');
    const { user } = await invite(service, 'sandbox', 'dora', { email: 'dora@one.example', username: 'dora' });
    expect(user).toMatchObject({ email: 'dora@one.example' });
  });
});
