import { DomainError } from '@scheduling/errors';
import { findAtOwner } from '../customer/customer-copy.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { findInvitation } from './invitation.ts';

/** Who books on a page by an invitation. */
export interface InvitedCustomer {
  invitationId: string;
  customerId: string;
  customerReference: string;
  /** What can be booked. */
  productReference: string;
  name: string;
  email: string | undefined;
  /** Language tag. */
  language: string | undefined;
  bookingsLeft: number;
  /** Whether nothing can be booked today. */
  isLimited: boolean;
}

/**
 * The customer of an invitation to a provider's page, as the customer service knows them at this moment. Rejects with
 * `link.not_found` for every token that does not work, whatever the reason, and with `service.unavailable` if the
 * customer service does not answer.
 */
export async function requireInvited(
  dependencies: CalendarDependencies,
  { crmId, providerId }: { crmId: string; providerId: string },
  token: string,
): Promise<InvitedCustomer> {
  const { database, links } = dependencies;
  const link = links.read(token);
  const invitation =
    link?.purpose === 'invite' && link.crmId === crmId
      ? await findInvitation(database.kysely, crmId, link.invitationId)
      : undefined;
  const customer =
    invitation?.providerId === providerId ? await findAtOwner(dependencies, crmId, invitation.customerId) : undefined;
  if (invitation === undefined || customer === undefined || !links.isIssued(token, customer.email))
    throw new DomainError('link.not_found');
  const { id: invitationId, customerId, productReference, bookings, use } = invitation;
  const { customerReference, userName: name, email, language } = customer;
  return {
    invitationId,
    customerId,
    customerReference,
    productReference,
    name,
    email,
    language,
    bookingsLeft: Math.max(0, bookings - use.booked),
    isLimited: use.isLimited,
  };
}
