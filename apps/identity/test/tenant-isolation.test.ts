import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, invite } from './scenario.ts';

/** What a CRM could name: things of its own, of another CRM, or nothing at all. */
interface Names {
  user: string;
  account: string;
  provider: string;
  providerId: string;
  verificationId: string;
}

const crmId = 'two';
const absent: Names = {
  user: 'absent@crm',
  account: 'absent-account@crm',
  provider: 'absent-provider@crm',
  providerId: '0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77',
  verificationId: '0199b5a0-7c3e-7d2f-9a41-2f6f0a9c1b77',
};

let service: IdentityUnderTest;
let foreign: Names;
const own = { owner: 'owner@crm', account: 'account@crm', provider: 'provider@crm' };

/** A CRM's calls that name something of a CRM; a new account's or provider's own reference is free in both. */
const calls: [method: keyof typeof IdentityServiceService, what: string, call: (names: Names) => Promise<unknown>][] = [
  ['getUser', 'user', ({ user }) => service.identity.getUser({ crmId, reference: user })],
  ['requestVerification', 'user', ({ user }) => service.identity.requestVerification({ crmId, reference: user })],
  ['createAccount', 'owner', ({ user }) => createAccountOf(user)],
  ['getAccount', 'account', ({ account }) => service.identity.getAccount({ crmId, reference: account })],
  ['createProvider', 'owner', ({ user }) => createProviderOf(user, own.account)],
  ['createProvider', 'account', ({ account }) => createProviderOf(own.owner, account)],
  ['getProvider', 'reference', ({ provider }) => service.identity.getProvider({ crmId, key: { $case: 'reference', value: provider } })],
  ['getProvider', 'id', ({ providerId }) => service.identity.getProvider({ crmId, key: { $case: 'id', value: providerId } })],
  ['listStaff', 'provider', ({ provider }) => service.identity.listStaff({ crmId, providerReference: provider })],
  ['addStaff', 'provider', ({ provider }) => addStaff(provider, own.owner)],
  ['addStaff', 'user', ({ user }) => addStaff(own.provider, user)],
  ['removeStaff', 'provider', ({ provider }) => service.identity.removeStaff({ crmId, providerReference: provider, userReference: own.owner })],
  ['removeStaff', 'user', ({ user }) => service.identity.removeStaff({ crmId, providerReference: own.provider, userReference: user })],
  ['issueVerificationToken', 'verification', ({ verificationId }) => service.identity.issueVerificationToken({ crmId, verificationId })],
];

/** They name nothing of another CRM: create user is tested with its rules, the others have no CRM or are about it. */
const withoutNames = ['authenticateKey', 'getCrm', 'createUser', 'getVerification', 'confirmVerification'];

beforeAll(async () => {
  service = await startIdentity();
  await service.admin.createCrm({ crmId: 'one' });
  await service.admin.createCrm({ crmId });
  await createProvider(service, crmId);
  foreign = await createForeign();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('what belongs to another CRM', () => {
  it.each(calls)('is for %s (%s) as if it did not exist, and nothing comes of it', async (_method, _what, call) => {
    const before = await everything();
    const ofForeign = await refusal(call(foreign));
    expect(ofForeign).toEqual(await refusal(call(absent)));
    expect(ofForeign.category).toBe('not_found');
    expect(await everything()).toBe(before);
  });

  it('is tried with every method', () => {
    const tried = new Set([...calls.map(([method]) => method as string), ...withoutNames]);
    expect([...tried].toSorted()).toEqual(Object.keys(IdentityServiceService).toSorted());
  });
});

function createAccountOf(ownerReference: string): Promise<unknown> {
  return service.identity.createAccount({ crmId, account: { accountReference: 'new@crm', ownerReference, branch: 'misc' } });
}

function createProviderOf(ownerReference: string, accountReference: string): Promise<unknown> {
  return service.identity.createProvider({ crmId, reference: 'new@crm', ownerReference, accountReference, name: 'New' });
}

function addStaff(providerReference: string, userReference: string): Promise<unknown> {
  return service.identity.addStaff({ crmId, providerReference, member: { $case: 'userReference', value: userReference } });
}

/** One of everything in the first CRM, with references that the second one does not have. */
async function createForeign(): Promise<Names> {
  await createProvider(service, 'one');
  await invite(service, 'one', 'foreign');
  await createUser(service, 'one', 'foreign');
  const account = { accountReference: 'foreign-account@crm', ownerReference: 'foreign@crm', branch: 'misc' };
  await service.identity.createAccount({ crmId: 'one', account });
  const { provider } = await service.identity.createProvider({
    crmId: 'one',
    reference: 'foreign-provider@crm',
    ownerReference: 'foreign@crm',
    accountReference: 'foreign-account@crm',
    name: 'Foreign',
  });
  const verification = await service.database.kysely.selectFrom('emailVerification').select('id').executeTakeFirstOrThrow();
  return {
    user: 'foreign@crm',
    account: 'foreign-account@crm',
    provider: 'foreign-provider@crm',
    providerId: provider!.id,
    verificationId: verification.id,
  };
}

/** All rows of all tables, but for what the relay notes of its own work. */
async function everything(): Promise<string> {
  const tables = ['crm', 'app_user', 'account', 'provider', 'provider_staff', 'email_verification'];
  const contents = await Promise.all(tables.map((table) => sql`SELECT * FROM ${sql.table(table)} AS t ORDER BY t`.execute(service.database.kysely)));
  const outbox = await service.database.kysely.selectFrom('outbox').select('id').orderBy('id').execute();
  return JSON.stringify([...contents.map(({ rows }) => rows), outbox]);
}
