import { addressKey } from '@scheduling/runtime';
import type { IdentityDependencies } from '../dependencies.ts';
import type { UserRow } from '../user/user.ts';
import { requireProvider } from './get-provider.ts';
import type { ProviderRow } from './provider.ts';

export interface ProviderRecipientsQuery {
  crmId: string;
  providerId: string;
  /** The reference of a user: the contact of an appointment. */
  contactReference?: string | undefined;
}

/** Where a mail to a provider goes. */
export interface ProviderRecipient {
  email: string;
  name: string;
  /** Null for the provider's own address, as is the language. */
  userId: string | null;
  language: string | null;
  /** The contact of the appointment. */
  contact: boolean;
}

/**
 * Where mails to a provider about its bookings go: its own address, or else its owner's, and that of the contact of an
 * appointment, if it is another one, and if the contact has access to the provider and has confirmed it. Derived
 * addresses are none. Rejects with `provider.not_found`.
 */
export async function listProviderRecipients(
  dependencies: IdentityDependencies,
  { crmId, providerId, contactReference }: ProviderRecipientsQuery,
): Promise<ProviderRecipient[]> {
  const provider = await requireProvider(dependencies.database.kysely, { crmId, id: providerId });
  const own = await findOwnRecipient(dependencies, provider);
  const contact =
    contactReference === undefined ? undefined : await findContact(dependencies, provider, contactReference);
  const isAnotherOne = contact && (own === undefined || addressKey(own.email) !== addressKey(contact.email));
  return [own, isAnotherOne ? recipientOf(contact, true) : undefined].filter((each) => each !== undefined);
}

async function findOwnRecipient(
  { database }: IdentityDependencies,
  { crmId, ownerId, name, email }: ProviderRow,
): Promise<ProviderRecipient | undefined> {
  if (email !== null) return { email, name, userId: null, language: null, contact: false };
  const owner = await database.kysely
    .selectFrom('appUser')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('id', '=', ownerId)
    .where('emailGenerated', '=', false)
    .executeTakeFirst();
  return owner && recipientOf(owner, false);
}

function findContact(
  { database }: IdentityDependencies,
  { crmId, id: providerId }: ProviderRow,
  reference: string,
): Promise<UserRow | undefined> {
  return database.kysely
    .selectFrom('appUser')
    .innerJoin('providerStaff', (join) =>
      join.onRef('providerStaff.crmId', '=', 'appUser.crmId').onRef('providerStaff.userId', '=', 'appUser.id'),
    )
    .selectAll('appUser')
    .where('appUser.crmId', '=', crmId)
    .where('appUser.reference', '=', reference)
    .where('providerStaff.providerId', '=', providerId)
    .where('emailVerifiedAt', 'is not', null)
    .where('emailGenerated', '=', false)
    .executeTakeFirst();
}

function recipientOf({ id, email, firstName, lastName, language }: UserRow, contact: boolean): ProviderRecipient {
  const name = [firstName, lastName].filter(Boolean).join(' ');
  return { email, name, userId: id, language, contact };
}
