import type { CalendarDependencies } from '../dependencies.ts';
import { type BookingPage, type OfferChoice, openBookingPage, type PageVisit, requireOffer } from './booking-page.ts';
import { findChoice, ifBooked, isHoldOf } from './page-choice.ts';
import { heldPlace, type PagePlace, readPlacesAt, toPagePlace, unavailable } from './page-places.ts';

/**
 * What is chosen, as it would be booked at present; no place if it has been booked. Rejects as
 * {@link openBookingPage}, with `booking_page.offer_not_found`, or `slot.unavailable` and a reason.
 */
export async function getPageChoice(
  dependencies: CalendarDependencies,
  {
    providerId,
    invitation,
    choice,
    start,
    ...chosen
  }: Required<OfferChoice> & PageVisit & { choice: string; start: Date },
): Promise<{ page: BookingPage; place: PagePlace | undefined }> {
  const page = await openBookingPage(dependencies, { providerId, invitation });
  const offer = requireOffer(page, chosen);
  const found = await findChoice(dependencies, page, choice);
  if (ifBooked(found) !== undefined) return { page, place: undefined };
  if (found !== undefined && isHoldOf(found, offer, { ...chosen, start })) return { page, place: heldPlace(found) };
  const [place] = await readPlacesAt(dependencies, page, offer, start);
  if (place === undefined) throw unavailable(page, start);
  return { page, place: toPagePlace(place, offer) };
}
