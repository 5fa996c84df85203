import { events } from '@scheduling/events';
import { eventually, withKey } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser } from './scenario.ts';

let service: IdentityUnderTest;
let count = 0;
beforeAll(async () => {
  service = await startIdentity();
  for (const crmId of ['one', 'two']) {
    await service.admin.createCrm({ crmId });
    await createProvider(service, crmId);
  }
});
afterAll(() => service[Symbol.asyncDispose]());

const create = () => createUser(service, 'one', `person-${(count += 1)}`);
const remove = (reference: string | undefined, crmId = 'one') => service.identity.deleteUser({ crmId, reference: reference! });
const read = (reference: string | undefined, crmId = 'one') => service.identity.getUser({ crmId, reference: reference! });
const member = (userReference: string) => ({ crmId: 'one', providerReference: 'provider@crm', member: { $case: 'userReference', value: userReference } as const });
const deletionsOf = async (id: string) => (await recordedEvents(service.database, events.userDeleted)).filter(({ userId }) => userId === id);
const absent = { category: 'not_found', code: 'user.not_found' };

/** Every table with a row that contains the id. */
async function tablesWith(id: string): Promise<string[]> {
  const tables = ['app_user', 'provider_staff', 'email_verification', 'idempotency_key', 'account', 'provider'];
  const found = await Promise.all(
    tables.map((table) => sql`SELECT FROM ${sql.table(table)} AS t WHERE t::text LIKE ${`%${id}%`}`.execute(service.database.kysely)),
  );
  return tables.filter((_, index) => found[index]!.rows.length > 0);
}

describe('a deleted user', () => {
  it('leaves nothing behind but the event about it', async () => {
    const name = `person-${(count += 1)}`;
    const person = { crmId: 'one', reference: `${name}@crm`, email: `${name}@one.example`, username: name, lastName: 'Last' };
    const { user } = await withKey(name, () => service.identity.createUser(person));
    await service.identity.addStaff(member(person.reference));
    await service.identity.requestVerification({ crmId: 'one', reference: person.reference });
    expect(await tablesWith(user!.id)).toEqual(['app_user', 'provider_staff', 'email_verification', 'idempotency_key']);
    await remove(person.reference);
    expect(await tablesWith(user!.id)).toEqual([]);
    expect(await deletionsOf(user!.id)).toEqual([{ crmId: 'one', userId: user!.id }]);
    expect(await refusal(read(person.reference))).toMatchObject(absent);
  });

  it('frees reference, e-mail and username for another person', async () => {
    const user = await create();
    await remove(user.reference);
    const person = { crmId: 'one', reference: user.reference!, email: user.email, username: user.username, lastName: user.lastName };
    const { user: another, created } = await service.identity.createUser(person);
    expect({ another, created }).toEqual({ another: { ...user, id: another!.id }, created: true });
    expect(another!.id).not.toBe(user.id);
  });

  it('has no working verification link, and gets no further mail', async () => {
    const user = await create();
    await service.identity.requestVerification({ crmId: 'one', reference: user.reference! });
    const verification = (await recordedEvents(service.database, events.emailVerificationRequested)).at(-1)!;
    const { token } = await service.identity.issueVerificationToken(verification);
    await remove(user.reference);
    const unknown = { category: 'not_found', code: 'verification.not_found' };
    expect(await refusal(service.identity.confirmVerification({ token }))).toMatchObject(unknown);
    expect(await refusal(service.identity.issueVerificationToken(verification))).toMatchObject(unknown);
  });

  it('is not found a second time, nor by another CRM, which keeps its own user with the reference', async () => {
    const user = await create();
    expect(await refusal(remove(user.reference, 'two'))).toMatchObject(absent);
    expect((await read(user.reference)).user).toEqual(user);
    const other = await createUser(service, 'two', `person-${count}`);
    await remove(user.reference);
    expect(await refusal(remove(user.reference))).toMatchObject(absent);
    expect((await read(other.reference, 'two')).user).toEqual(other);
    expect(await deletionsOf(user.id)).toHaveLength(1);
  });
});

describe('the owner of an account or a provider', () => {
  const createAccount = (ownerReference: string, accountReference: string) =>
    service.identity.createAccount({ crmId: 'one', account: { accountReference, ownerReference, branch: 'misc' } });

  it('is not deleted, and nothing changes', async () => {
    const user = await create();
    await service.identity.requestVerification({ crmId: 'one', reference: user.reference! });
    await service.identity.addStaff(member(user.reference!));
    await createAccount(user.reference!, `of-${count}@crm`);
    const message = `The user cannot be deleted, because they own account of-${count}@crm.`;
    expect(await refusal(remove(user.reference))).toMatchObject({ category: 'conflict', code: 'user.owner', message });
    const ofProvider = { crmId: 'one', reference: `provider-${count}`, ownerReference: `${(await create()).reference}`, accountReference: 'account@crm', name: 'P' };
    await service.identity.createProvider(ofProvider);
    expect((await refusal(remove(ofProvider.ownerReference))).message).toContain(`provider ${ofProvider.reference}.`);
    expect(await tablesWith(user.id)).toEqual(['app_user', 'provider_staff', 'email_verification', 'account']);
    expect(await deletionsOf(user.id)).toEqual([]);
  });

  it('learns of ten of the things that they own', async () => {
    const { reference } = await create();
    for (let number = 1; number <= 11; number += 1) await createAccount(reference!, `of-${count}-${number}@crm`);
    expect((await refusal(remove(reference))).message).toMatch(/^The user cannot be deleted, because they own (?:account \S+, ){9}account \S+ and more\.$/);
  });
});

describe('a user who is deleted while', () => {
  type Call = (reference: string, round: number) => Promise<unknown>;
  const cases: [what: string, call: Call, refusals: { ofDeletion?: string; ofCall: string }][] = [
    [
      'an account is created for them',
      (ownerReference, round) => service.otherReplica.createAccount({ crmId: 'one', account: { accountReference: `race-${round}@crm`, ownerReference, branch: 'misc' } }),
      { ofDeletion: 'user.owner', ofCall: 'account.owner_not_found' },
    ],
    [
      'a provider is created for them',
      (ownerReference, round) =>
        service.otherReplica.createProvider({ crmId: 'one', reference: `race-${round}`, ownerReference, accountReference: 'account@crm', name: 'Race' }),
      { ofDeletion: 'user.owner', ofCall: 'provider.owner_not_found' },
    ],
    ['they are added as staff', (reference) => service.otherReplica.addStaff(member(reference)), { ofCall: 'user.not_found' }],
    ['a verification mail is requested', (reference) => service.otherReplica.requestVerification({ crmId: 'one', reference }), { ofCall: 'user.not_found' }],
    ['they are changed', (reference) => service.otherReplica.updateUser({ crmId: 'one', reference, email: `new-${reference}.example` }), { ofCall: 'user.not_found' }],
  ];

  it.each(cases)('%s is either there first, or gone', async (_what, call, { ofDeletion, ofCall }) => {
    for (let round = 0; round < 30; round += 1) {
      const { id, reference } = await create();
      const [deleted, called] = await Promise.allSettled([remove(reference), call(reference!, count)]);
      if (called.status === 'rejected') expect(called.reason).toMatchObject({ code: ofCall });
      if (deleted.status === 'rejected') expect(deleted.reason).toMatchObject({ code: ofDeletion });
      // A member of staff can be added before, and is then removed with the user.
      if (ofDeletion !== undefined) expect([deleted.status, called.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      expect((await tablesWith(id)).length > 0).toBe(deleted.status === 'rejected');
    }
  });

  it('they are created or invited again is replaced by a new one', async () => {
    for (let round = 0; round < 30; round += 1) {
      const { reference, email, username, lastName } = await create();
      const person = { crmId: 'one', email, username, lastName };
      const invitation = { crmId: 'one', providerReference: 'provider@crm', member: { $case: 'invitation', value: person } as const };
      const again = round % 2 === 0 ? service.otherReplica.createUser({ ...person, reference: reference! }) : service.otherReplica.addStaff(invitation);
      const [deleted, created] = await Promise.allSettled([remove(reference), again]);
      expect([deleted.status, created.status]).toEqual(['fulfilled', 'fulfilled']);
    }
  });

  it('a link is used is verified first, or gone', async () => {
    for (let round = 0; round < 30; round += 1) {
      const { id, reference } = await create();
      await service.identity.requestVerification({ crmId: 'one', reference: reference! });
      const { token } = await service.identity.issueVerificationToken((await recordedEvents(service.database, events.emailVerificationRequested)).at(-1)!);
      const [deleted, confirmed] = await Promise.allSettled([remove(reference), service.otherReplica.confirmVerification({ token })]);
      expect(deleted.status).toBe('fulfilled');
      if (confirmed.status === 'rejected') expect(confirmed.reason).toMatchObject({ code: 'verification.not_found' });
      expect(await tablesWith(id)).toEqual([]);
    }
  });
});

it('deletions are repeated on request, after a backup brought a person back', async () => {
  const user = await create();
  await service.identity.addStaff(member(user.reference!));
  const stored = await service.database.kysely.selectFrom('appUser').selectAll().where('id', '=', user.id).executeTakeFirstOrThrow();
  // The deletions of the other tests are not repeated: there are so many that a busy machine takes longer than a call may.
  const since = new Date();
  await remove(user.reference);
  await service.database.kysely.insertInto('appUser').values(stored).execute();
  expect((await read(user.reference)).user).toEqual(user);
  const unsent = () => service.database.kysely.selectFrom('outbox').select('id').where('sentAt', 'is', null).execute();
  await eventually(async () => expect(await unsent()).toEqual([]));
  const { replayed, eventsReachBackTo } = await service.admin.replayUserDeletions({ since });
  expect(replayed).toBeGreaterThan(0);
  expect(eventsReachBackTo).toBeInstanceOf(Date);
  expect(await tablesWith(user.id)).toEqual([]);
  expect(await deletionsOf(user.id)).toHaveLength(2);
  expect(await refusal(service.admin.replayUserDeletions({}))).toMatchObject({ category: 'invalid', code: 'erasure.since_missing' });
});

it('no deletion causes a deadlock', async () => {
  expect(await service.countDeadlocks()).toBe(0);
});
