import { DomainError } from '@scheduling/errors';
import { addressKey, isUuid } from '@scheduling/runtime';
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
  /** That of the user, or of the provider. */
  id: string;
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
    contactReference === undefined
      ? undefined
      : await selectStaff(dependencies, provider)
          .where('appUser.reference', '=', contactReference)
          .where('emailVerifiedAt', 'is not', null)
          .executeTakeFirst();
  const isAnotherOne = contact && (own === undefined || addressKey(own.email) !== addressKey(contact.email));
  return [own, isAnotherOne ? recipientOf(contact, true) : undefined].filter((each) => each !== undefined);
}

async function findOwnRecipient(
  { database }: IdentityDependencies,
  { crmId, id, ownerId, name, email }: ProviderRow,
): Promise<ProviderRecipient | undefined> {
  if (email !== null) return { id, email, name, userId: null, language: null, contact: false };
  const owner = await database.kysely
    .selectFrom('appUser')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('id', '=', ownerId)
    .where('emailGenerated', '=', false)
    .executeTakeFirst();
  return owner && recipientOf(owner, false);
}

/**
 * One of these recipients by its id, as it is now. Rejects with `provider.not_found`, or `staff.not_found`
 * if it has no address any more, or no access.
 */
export async function getProviderRecipient(
  dependencies: IdentityDependencies,
  { crmId, providerId, recipientId }: { crmId: string; providerId: string; recipientId: string },
): Promise<ProviderRecipient> {
  const provider = await requireProvider(dependencies.database.kysely, { crmId, id: providerId });
  const { id, name, email, ownerId } = provider;
  if (recipientId === id && email !== null) return { id, email, name, userId: null, language: null, contact: false };
  const user = isUuid(recipientId)
    ? await selectStaff(dependencies, provider).where('appUser.id', '=', recipientId).executeTakeFirst()
    : undefined;
  if (user === undefined || (user.id !== ownerId && user.emailVerifiedAt === null))
    throw new DomainError('staff.not_found');
  return recipientOf(user, false);
}

/** Those with access to the provider, and an address that is theirs. */
function selectStaff({ database }: IdentityDependencies, { crmId, id: providerId }: ProviderRow) {
  return database.kysely
    .selectFrom('appUser')
    .innerJoin('providerStaff', (join) =>
      join.onRef('providerStaff.crmId', '=', 'appUser.crmId').onRef('providerStaff.userId', '=', 'appUser.id'),
    )
    .selectAll('appUser')
    .where('appUser.crmId', '=', crmId)
    .where('providerStaff.providerId', '=', providerId)
    .where('emailGenerated', '=', false);
}

function recipientOf({ id, email, firstName, lastName, language }: UserRow, contact: boolean): ProviderRecipient {
  const name = [firstName, lastName].filter(Boolean).join(' ');
  return { id, email, name, userId: id, language, contact };
}
