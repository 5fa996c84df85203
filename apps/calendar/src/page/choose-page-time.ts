import { DomainError } from '@scheduling/errors';
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import type { CalendarDependencies } from '../dependencies.ts';
import { settle } from '../participation/settle.ts';
import { bookingCall, type NewBooking } from '../slot/book-slot.ts';
import type { ResourceTime } from '../slot/resource-times.ts';
import { dateAt } from '../slot/weeks.ts';
import {
  type BookingPage,
  type OfferChoice,
  type PageOffer,
  type PageVisit,
  openBookingPage,
  requireOffer,
} from './booking-page.ts';
import { findHold, holdReference, isHoldOf, releaseHold } from './page-choice.ts';
import {
  byPreference,
  countSeats,
  heldPlace,
  isUnavailable,
  type PagePlace,
  periodOfDay,
  placeOf,
  readPlaces,
  toPagePlace,
  unavailable,
} from './page-places.ts';

export interface ChosenTime {
  page: BookingPage;
  /** Whoever has it can complete the booking. */
  choice: string;
  place: PagePlace;
}

/** Places of a provider that are held at a time. */
const maxHolds = 10;

/**
 * Chooses a time of an offer, on the resource that has the most times on that day unless one is named, and holds its
 * place if that is possible; see hold-page-time.sql. What is to be requested takes no seat, and is not held. An earlier
 * choice is released, unless it is the same. Rejects as {@link openBookingPage}, with `booking_page.offer_not_found`,
 * `booking_page.invitation_used`, `booking_page.limit_reached`, or `slot.unavailable` and a reason.
 */
export async function choosePageTime(
  dependencies: CalendarDependencies,
  { providerId, invitation, ...request }: TimeChoice & PageVisit,
): Promise<ChosenTime> {
  const page = await openBookingPage(dependencies, { providerId, invitation });
  return dependencies.pages.countRefusal('choice', page.crmId, choose(dependencies, page, request));
}

interface TimeChoice extends OfferChoice {
  start: Date;
  /** An earlier one. */
  choice?: string | undefined;
}

async function choose(
  dependencies: CalendarDependencies,
  page: BookingPage,
  { start, choice: earlier, ...chosen }: TimeChoice,
): Promise<ChosenTime> {
  const offer = requireOffer(page, chosen);
  refuseIfUsed(page);
  const hold = await findHold(dependencies, page, earlier);
  if (hold !== undefined && isHoldOf(hold, offer, { ...chosen, start }))
    return { page, choice: earlier!, place: heldPlace(hold) };
  if (hold !== undefined) await releaseHold(dependencies, page, hold);

  const day = periodOfDay(dateAt(start.getTime(), page.timeZone), page);
  // Of all resources: what is held is a part of what they have together.
  const whole = requireOffer(page, { offer: chosen.offer });
  const ofDay = byPreference(await readPlaces(dependencies, page, whole, day), page);
  const candidates = ofDay.filter(
    ({ startsAt, resourceReference }) =>
      startsAt === start.getTime() && resourceReference === (chosen.resourceReference ?? resourceReference),
  );
  const [first] = candidates;
  if (first === undefined) throw unavailable(page, start);
  const choice = randomUUID();
  const { pages } = dependencies;
  if (page.confirmation === 'REQUESTED') {
    pages.chosen(page.crmId, 'not_needed');
    return { page, choice, place: toPagePlace(first, offer) };
  }
  const limits: HoldLimits = {
    maxHolds,
    dayStart: day.from.toString(),
    dayEnd: day.to.toString(),
    freePlaces: countSeats(ofDay),
  };
  for (const candidate of candidates) {
    const isDone = await tryToHold(dependencies, { page, offer, choice, candidate, limits });
    if (!isDone) continue;
    const held = await findHold(dependencies, page, choice);
    pages.chosen(page.crmId, held === undefined ? 'limited' : 'held');
    return { page, choice, place: held === undefined ? toPagePlace(candidate, offer) : heldPlace(held) };
  }
  throw unavailable(page, start);
}

/** Before whoever is invited types anything; what counts is asked again behind the locks (book-by-invitation.sql). */
function refuseIfUsed({ invited }: BookingPage): void {
  if (invited?.bookingsLeft === 0) throw new DomainError('booking_page.invitation_used');
  if (invited?.isLimited === true) throw new DomainError('booking_page.limit_reached');
}

/** See hold-page-time.sql. */
interface HoldLimits {
  maxHolds: number;
  dayStart: string;
  dayEnd: string;
  freePlaces: number;
}

interface Attempt {
  page: BookingPage;
  offer: PageOffer;
  choice: string;
  candidate: ResourceTime;
  limits: HoldLimits;
}

/** False if the place has just been taken. If too much is held already, nothing is. */
async function tryToHold(
  dependencies: CalendarDependencies,
  { page, offer, choice, candidate, limits }: Attempt,
): Promise<boolean> {
  const { crmId, providerReference } = page;
  const booking: NewBooking = {
    crmId,
    providerReference,
    place: placeOf(candidate, offer),
    reference: holdReference(choice),
    state: 'RESERVED',
    ignoreNotice: false,
    sendMails: false,
  };
  const id = randomUUIDv7();
  const work = settle(dependencies, {
    provider: { crmId, providerReference },
    references: [booking.reference],
    call: (provider) => {
      const { request, locks } = bookingCall(provider, id, booking);
      return { name: 'hold_page_time', request: { ...request, ...limits }, locks };
    },
    busy: 'slot.busy',
  });
  try {
    await dependencies.bookings.countRefusal(crmId, work);
    return true;
  } catch (error) {
    if (isUnavailable(error)) return false;
    throw error;
  }
}
