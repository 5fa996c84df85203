import type { IdentityUnderTest } from './identity-under-test.ts';

type Service = Pick<IdentityUnderTest, 'identity'>;

/** A user whose reference, address and username are derived from one name. */
export async function createUser({ identity }: Service, crmId: string, name: string) {
  const { user } = await identity.createUser({
    crmId,
    reference: `${name}@crm`,
    email: `${name}@${crmId}.example`,
    username: `${name}-${crmId}`,
    lastName: name,
  });
  return user!;
}

/** The owner `owner@crm` with the account `account@crm` and the provider `provider@crm`. */
export async function createProvider(service: Service, crmId: string) {
  await createUser(service, crmId, 'owner');
  const account = { accountReference: 'account@crm', ownerReference: 'owner@crm', branch: 'misc' };
  await service.identity.createAccount({ crmId, account });
  const { provider } = await service.identity.createProvider({
    crmId,
    reference: 'provider@crm',
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: 'Provider',
  });
  return provider!;
}

export async function invite({ identity }: Service, crmId: string, name: string, changes: { email?: string; username?: string } = {}) {
  return identity.addStaff({
    crmId,
    providerReference: 'provider@crm',
    member: {
      $case: 'invitation',
      value: { email: `${name}@${crmId}.example`, username: `${name}-${crmId}`, lastName: name, ...changes },
    },
  });
}
