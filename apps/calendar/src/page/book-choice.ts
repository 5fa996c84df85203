import { DomainError } from '@scheduling/errors';
import { randomUUIDv7 } from 'node:crypto';
import type { NamedCustomer } from '../customer/customer-copy.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type BookingCall, settle } from '../participation/settle.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { bookingCall } from '../slot/book-slot.ts';
import type { BookingPage, PageOffer } from './booking-page.ts';
import {
  bookingReference,
  type ChoiceRow,
  findChoice,
  holdReference,
  ifBooked,
  isHoldOf,
  releaseHold,
} from './page-choice.ts';
import { isBookingOf, nameCustomer, type PagePerson } from './page-customer.ts';
import {
  heldPlace,
  isUnavailable,
  type PagePlace,
  placeOf,
  readPlacesAt,
  toPagePlace,
  unavailable,
} from './page-places.ts';

/** What a person books who has chosen it on a page. */
export interface ChosenBooking extends PagePerson {
  choice: string;
  resourceReference: string;
  start: Date;
  /** That the person was shown. */
  price?: PagePlace['price'];
  /** To the provider. */
  note?: string | undefined;
}

/** The id of the participation that was booked, and whose it is. */
export interface BookedChoice {
  participationId: string;
  /** Undefined if whoever is invited has none. */
  email: string | undefined;
}

/**
 * Makes the booking of a choice; see book-page-time.sql. Again, for the same person: nothing happens. Rejects with
 * `booking_page.choice_used`, `booking_page.changed`, `booking_page.limit_reached`, `booking_page.invitation_used`,
 * `link.not_found` for an invitation or customer that has just gone, `slot.unavailable` and a reason, or `slot.busy`.
 *
 * @param offer with the resource of the booking only
 * @param maxOfDay how many bookings the page makes of an address in 24 hours; undefined: any number
 */
export async function bookChoice(
  dependencies: CalendarDependencies,
  page: BookingPage,
  offer: PageOffer,
  { maxOfDay, ...booking }: ChosenBooking & { maxOfDay?: number },
): Promise<BookedChoice> {
  const customer = await nameCustomer(dependencies, page, booking);
  const { crmId, providerReference } = page;
  const id = randomUUIDv7();
  const work = settle(dependencies, {
    provider: { crmId, providerReference },
    customer,
    references: [holdReference(booking.choice)],
    call: (provider) => callOf(dependencies, { page, offer, booking, maxOfDay, customer, provider, id }),
    busy: 'slot.busy',
  });
  try {
    const { id: participationId } = await dependencies.bookings.countRefusal(crmId, work);
    return await requireOwn(dependencies, page, participationId, booking);
  } catch (error) {
    if (page.invited && error instanceof DomainError && error.code === 'customer.not_found')
      throw new DomainError('link.not_found');
    // Its timeslot or appointment has gone since.
    if (isUnavailable(error)) throw unavailable(page, booking.start);
    // Somebody has taken the choice to another provider, or the CRM the references of pages.
    if (error instanceof DomainError && error.code === 'participation.reference_taken') throw choiceUsed();
    throw error;
  }
}

/**
 * A choice may have come from somebody else, who would learn what the person has booked. Rejects with
 * `booking_page.choice_used`.
 */
export async function requireOwn(
  dependencies: CalendarDependencies,
  page: BookingPage,
  participationId: string,
  person: Omit<PagePerson, 'language'>,
): Promise<BookedChoice> {
  if (!(await isBookingOf(dependencies, page, participationId, person))) throw choiceUsed();
  return { participationId, email: page.invited ? page.invited.email : person.email };
}

/** The token by which a page shows what was booked there. */
export function receiptOf(
  { links }: CalendarDependencies,
  { crmId }: BookingPage,
  { participationId, email }: BookedChoice,
): string {
  return links.issue({ purpose: 'receipt', crmId, participationId }, email);
}

function choiceUsed(): DomainError {
  return new DomainError('booking_page.choice_used');
}

/**
 * The place of a choice, held or free, at the price that the person was shown. Rejects with `booking_page.changed`, or
 * `slot.unavailable` and a reason.
 *
 * @param hold of the choice, if it is held
 */
export async function findChosenPlace(
  dependencies: CalendarDependencies,
  page: BookingPage,
  offer: PageOffer,
  { booking, hold }: { booking: Pick<ChosenBooking, 'resourceReference' | 'start' | 'price'>; hold?: ChoiceRow },
): Promise<{ shown: PagePlace; place: ReturnType<typeof placeOf> }> {
  const { start, price } = booking;
  if (hold !== undefined && isHoldOf(hold, offer, booking)) {
    const shown = heldPlace(hold);
    if (!isSamePrice(shown.price, price)) throw new DomainError('booking_page.changed');
    return { shown, place: { appointmentReference: hold.appointmentReference } };
  }
  const places = await readPlacesAt(dependencies, page, offer, start);
  if (places.length === 0) throw unavailable(page, start);
  for (const place of places) {
    const shown = toPagePlace(place, offer);
    if (isSamePrice(shown.price, price)) return { shown, place: placeOf(place, offer) };
  }
  throw new DomainError('booking_page.changed');
}

interface Attempt {
  page: BookingPage;
  offer: PageOffer;
  booking: ChosenBooking;
  maxOfDay: number | undefined;
  customer: NamedCustomer;
  provider: ProviderRow;
  /** Of the participation, if one is made. */
  id: string;
}

/** Each attempt goes by what is held, and what is free, at its moment. */
async function callOf(dependencies: CalendarDependencies, attempt: Attempt): Promise<BookingCall> {
  const { page, offer, booking, maxOfDay, customer, provider, id } = attempt;
  const { choice, note, price } = booking;
  const found = await findChoice(dependencies, page, choice);
  const made = ifBooked(found);
  const held = made === undefined ? found : undefined;
  // Another time may have been chosen in the meantime, and if the provider confirms bookings by now, they take no seat.
  const hold = held && page.confirmation === 'BOOKED' && isHoldOf(held, offer, booking) ? held : undefined;
  if (held !== hold) await releaseHold(dependencies, page, held!);
  const place = made
    ? { appointmentReference: made.appointmentReference }
    : (await findChosenPlace(dependencies, page, offer, { booking, ...(hold && { hold }) })).place;
  const { crmId, providerReference, confirmation: state } = page;
  const reference = bookingReference(choice);
  const { request, locks } = bookingCall(provider, id, {
    crmId,
    providerReference,
    place,
    reference,
    state,
    customer,
    ignoreNotice: false,
    sendMails: true,
  });
  const common = { ...request, holdReference: holdReference(choice), note, ...limitsOf(page, booking, maxOfDay) };
  return {
    name: 'book_page_time',
    request: hold === undefined ? common : { ...common, ...heldFields(hold, price) },
    locks,
  };
}

/** How much whoever is invited can book, or a person who says who they are. */
function limitsOf({ invited, maxPerPerson }: BookingPage, { email }: ChosenBooking, maxOfDay: number | undefined) {
  if (invited === undefined) return { email, maxPerPerson, maxOfDay };
  return { invitationId: invited.invitationId, invitedId: invited.customerId };
}

/** What the function compares with the hold behind its lock. */
function heldFields({ participationId, startsAt, endsAt }: ChoiceRow, price: PagePlace['price']) {
  return {
    heldId: participationId,
    shownStart: Date.parse(startsAt),
    shownEnd: Date.parse(endsAt),
    priceValue: price?.value,
    priceCurrency: price?.currency,
    state: 'BOOKED',
  };
}

function isSamePrice(one: PagePlace['price'], other: PagePlace['price']): boolean {
  return one?.value === other?.value && one?.currency === other?.currency;
}
