import type {
  AddStaffRequest,
  CreateAccountRequest,
  CreateProviderRequest,
  CreateUserRequest,
  RequestVerificationRequest,
} from '@scheduling/contracts/identity/v1';
import { repeatable, type RepeatableOperation, testRepeatableOperations, withKey } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser } from './scenario.ts';

let service: IdentityUnderTest;
let lastNumber = 0;

beforeAll(async () => {
  service = await startIdentity();
  for (const crmId of ['one', 'two']) {
    await service.admin.createCrm({ crmId });
    await createProvider(service, crmId);
  }
});
afterAll(() => service[Symbol.asyncDispose]());

function freshName(): string {
  lastNumber += 1;
  return `name-${lastNumber}`;
}

function newUser(crmId: string): CreateUserRequest {
  const name = freshName();
  return {
    crmId,
    reference: `${name}@crm`,
    email: `${name}@${crmId}.example`,
    username: `${name}-${crmId}`,
    lastName: 'Name',
  };
}

const users = repeatable<CreateUserRequest>({
  name: 'create user',
  prepare: async (crmId) => newUser(crmId),
  change: (request) => ({ ...request, lastName: 'Other' }),
  send: (request) => service.identity.createUser(request),
  prepareRefused: async () => {
    const crmId = freshName();
    return { request: newUser(crmId), code: 'crm.not_found', repair: () => service.admin.createCrm({ crmId }) };
  },
});

const verifications = repeatable<RequestVerificationRequest>({
  name: 'request verification',
  prepare: async (crmId) => ({ crmId, reference: (await createUser(service, crmId, freshName())).reference! }),
  change: (request) => ({ ...request, reference: 'owner@crm' }),
  send: (request) => service.identity.requestVerification(request),
  prepareRefused: async (crmId) => {
    const name = freshName();
    return {
      request: { crmId, reference: `${name}@crm` },
      code: 'user.not_found',
      repair: () => createUser(service, crmId, name),
    };
  },
});

function newAccount(crmId: string): CreateAccountRequest {
  return { crmId, account: { accountReference: `${freshName()}@crm`, ownerReference: 'owner@crm', branch: 'misc' } };
}

const accounts = repeatable<CreateAccountRequest>({
  name: 'create account',
  prepare: async (crmId) => newAccount(crmId),
  change: ({ crmId, account }) => ({ crmId, account: { ...account!, branch: 'handyman' } }),
  send: (request) => service.identity.createAccount(request),
  prepareRefused: async (crmId) => {
    const { account } = newAccount(crmId);
    const name = freshName();
    return {
      request: { crmId, account: { ...account!, ownerReference: `${name}@crm` } },
      code: 'account.owner_not_found',
      repair: () => createUser(service, crmId, name),
    };
  },
});

function newProvider(crmId: string): CreateProviderRequest {
  return {
    crmId,
    reference: `${freshName()}@crm`,
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: 'Name',
  };
}

const providers = repeatable<CreateProviderRequest>({
  name: 'create provider',
  prepare: async (crmId) => newProvider(crmId),
  change: (request) => ({ ...request, name: 'Other' }),
  send: (request) => service.identity.createProvider(request),
  prepareRefused: async (crmId) => {
    const { account } = newAccount(crmId);
    return {
      request: { ...newProvider(crmId), accountReference: account!.accountReference },
      code: 'provider.account_not_found',
      repair: () => service.identity.createAccount({ crmId, account }),
    };
  },
});

function newStaff(crmId: string, userReference: string): AddStaffRequest {
  return { crmId, providerReference: 'provider@crm', member: { $case: 'userReference', value: userReference } };
}

const staff: RepeatableOperation<AddStaffRequest> = {
  name: 'add staff',
  prepare: async (crmId) => newStaff(crmId, (await createUser(service, crmId, freshName())).reference!),
  change: (request) => ({ ...request, member: { $case: 'userReference', value: 'owner@crm' } }),
  send: (request) => service.identity.addStaff(request),
  prepareRefused: async (crmId) => {
    const name = freshName();
    return {
      request: newStaff(crmId, `${name}@crm`),
      code: 'user.not_found',
      repair: () => createUser(service, crmId, name),
    };
  },
};

const invitations = repeatable<AddStaffRequest>({
  ...staff,
  name: 'invite staff',
  prepare: async (crmId) => {
    const { reference: _reference, crmId: _crmId, ...value } = newUser(crmId);
    return { crmId, providerReference: 'provider@crm', member: { $case: 'invitation', value } };
  },
});

testRepeatableOperations([users, verifications, accounts, providers, repeatable(staff), invitations], () => ({
  pool: service.database.pool,
  tables: ['app_user', 'email_verification', 'account', 'provider', 'provider_staff', 'outbox'],
  crmIds: ['one', 'two'],
}));

describe('a repeated request', () => {
  it('returns the first status and the resource in its current state, whichever replica it reaches', async () => {
    const key = randomUUID();
    const request = newUser('one');
    expect(await withKey(key, () => service.identity.createUser(request))).toMatchObject({
      created: true,
      user: { lastName: 'Name' },
    });
    await service.identity.createUser({ ...request, lastName: 'Married' });
    expect(await withKey(key, () => service.otherReplica.createUser(request))).toMatchObject({
      created: true,
      user: { lastName: 'Married' },
    });
    expect(await service.identity.createUser(request)).toMatchObject({ created: false, user: { lastName: 'Name' } });
  });

  it('for staff removed in the meantime does not restore access', async () => {
    const key = randomUUID();
    const { reference } = await createUser(service, 'one', freshName());
    const add = () => withKey(key, () => service.identity.addStaff(newStaff('one', reference!)));
    const first = await add();
    await service.identity.removeStaff({ crmId: 'one', providerReference: 'provider@crm', userReference: reference! });
    expect(await add()).toEqual(first);
    const { users: present } = await service.identity.listStaff({ crmId: 'one', providerReference: 'provider@crm' });
    expect(present.map((user) => user.reference)).not.toContain(reference);
  });

  it('with the key of another operation is rejected', async () => {
    const key = randomUUID();
    await withKey(key, () => service.identity.createUser(newUser('one')));
    const account = withKey(key, () => service.identity.createAccount(newAccount('one')));
    await expect(account).rejects.toMatchObject({ category: 'unprocessable', code: 'idempotency_key.reused' });
  });
});
