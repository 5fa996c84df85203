import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import type { CalendarDependencies } from '../dependencies.ts';
import { getParticipation, type ParticipationKey } from '../participation/get-participation.ts';
import { findOwnBooking } from './own-booking.ts';

/**
 * The token of a person's link, for the address that the person has now. Rejects with `link.not_found` if none would
 * work, `participation.not_found`, `provider.not_found`, or `service.unavailable` if the customer service does not
 * answer.
 */
export async function getParticipationLink(dependencies: CalendarDependencies, key: ParticipationKey): Promise<string> {
  const { crmId } = key;
  const { id: participationId } = await getParticipation(dependencies, key);
  const booking = await findOwnBooking(dependencies, { crmId, participationId });
  if (booking === undefined) throw new DomainError('link.not_found', { text: 'No link to the participation works.' });
  return issueParticipationLink(dependencies, { crmId, participationId, email: booking.email ?? undefined });
}

/** The token of a link in a mail to this address. */
export function issueParticipationLink(
  { links }: CalendarDependencies,
  { crmId, participationId, email }: { crmId: string; participationId: string; email: string | undefined },
): string {
  if (!isUuid(participationId)) throw new DomainError('participation.not_found');
  return links.issue({ purpose: 'booking', crmId, participationId }, email);
}

/** The token of a link to decide a request, in a mail to this address of one of the provider's recipients. */
export function issueDecisionLink(
  { links }: CalendarDependencies,
  link: { crmId: string; participationId: string; recipientId: string; email: string },
): string {
  const { crmId, participationId, recipientId, email } = link;
  if (!isUuid(participationId) || !isUuid(recipientId)) throw new DomainError('participation.not_found');
  return links.issue({ purpose: 'decide', crmId, participationId, recipientId }, email);
}
