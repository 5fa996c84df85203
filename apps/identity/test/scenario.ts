import { withRows } from '@scheduling/postgres';
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

export async function invite(
  { identity }: Service,
  crmId: string,
  name: string,
  changes: { email?: string; username?: string } = {},
) {
  return identity.addStaff({
    crmId,
    providerReference: 'provider@crm',
    member: {
      $case: 'invitation',
      value: { email: `${name}@${crmId}.example`, username: `${name}-${crmId}`, lastName: name, ...changes },
    },
  });
}

interface NumberedAddresses {
  local: string;
  domain: string;
  first: number;
  count: number;
}

/**
 * Users with addresses of their own that end in consecutive numbers, for scenarios that need too many to create them
 * one by one.
 */
export function insertUsers(service: Pick<IdentityUnderTest, 'database'>, crmId: string, addresses: NumberedAddresses) {
  return insertNumbered(service, crmId, addresses, { emailGenerated: false, emailDerivedFrom: null });
}

/** What create user makes of as many requests with the address without a number. */
export function insertDerived(
  service: Pick<IdentityUnderTest, 'database'>,
  crmId: string,
  addresses: NumberedAddresses,
) {
  const { local, domain } = addresses;
  return insertNumbered(service, crmId, addresses, { emailGenerated: true, emailDerivedFrom: `${local}@${domain}` });
}

async function insertNumbered(
  { database }: Pick<IdentityUnderTest, 'database'>,
  crmId: string,
  { local, domain, first, count }: NumberedAddresses,
  columns: { emailGenerated: boolean; emailDerivedFrom: string | null },
): Promise<void> {
  const addresses = Array.from({ length: count }, (_, index) => `${local}${first + index}@${domain}`);
  const rows = addresses.map((email) => ({
    crmId,
    reference: email,
    email,
    emailKey: email,
    username: email,
    usernameKey: email,
    lastName: email,
    language: 'en',
    ...columns,
  }));
  await withRows(database.kysely.insertInto('appUser'), rows).execute();
}
