import type { CalendarDependencies } from '../dependencies.ts';
import { getBookingRules } from '../slot/booking-rules.ts';
import type { OwnBooking } from './own-booking.ts';

/**
 * Where a person can move a booking: a step of a timeslot, or an open appointment. It is for the same product, as long
 * as the booking is, and at the same price.
 */
export type OwnPlace = { timeslotReference: string; start: Date } | { appointmentReference: string };

/**
 * The resources on which the product of a booking is offered, and its own first. A product that is not offered keeps
 * its resource.
 */
export async function resourcesToMoveTo(
  dependencies: CalendarDependencies,
  { crmId, providerReference, productReference, resourceReference }: OwnBooking,
): Promise<string[]> {
  const { offers } = await getBookingRules(dependencies, { crmId, providerReference });
  const offered = offers
    .filter((offer) => offer.productReference === productReference)
    .flatMap(({ resources }) => resources.map((resource) => resource.resourceReference));
  return [...new Set([resourceReference, ...offered])];
}
