import type { CalendarDependencies } from '../dependencies.ts';
import { getBookingRules } from '../slot/booking-rules.ts';
import type { OwnBooking } from './own-booking.ts';

/** Where a person can move a booking: a step of a timeslot, as long as the booking is, or an open appointment. */
export type OwnPlace = { timeslotReference: string; start: Date } | { appointmentReference: string };

/**
 * The resources on which the product of a booking is offered, and its own first; undefined: all. A product that is not
 * offered keeps its resource.
 */
export async function resourcesToMoveTo(
  dependencies: CalendarDependencies,
  { crmId, providerReference, productReference, resourceReference }: OwnBooking,
): Promise<string[] | undefined> {
  const { offers } = await getBookingRules(dependencies, { crmId, providerReference });
  const offer = offers.find((each) => each.productReference === productReference);
  if (offer?.resources.length === 0) return undefined;
  const offered = offer?.resources.map((resource) => resource.resourceReference) ?? [];
  return [...new Set([resourceReference, ...offered])];
}
