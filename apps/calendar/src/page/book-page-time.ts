import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { isEmailAddress, isUuid } from '@scheduling/runtime';
import type { CalendarDependencies } from '../dependencies.ts';
import { bookChoice, type ChosenBooking, findChosenPlace, receiptOf, requireOwn } from './book-choice.ts';
import { type BookingPage, openBookingPage, type PageVisit, requireOffer } from './booking-page.ts';
import { findChoice, ifBooked } from './page-choice.ts';
import { storePendingBooking } from './pending-booking.ts';

export interface PageBookingRequest extends ChosenBooking, PageVisit {
  /** The key of an offer. */
  offer: string;
  /** Whether it has to be confirmed by a mail, whatever the rules say. */
  stepUp: boolean;
}

export interface SentForm {
  page: BookingPage;
  /** It has to be confirmed. */
  pending: boolean;
  /** A token by which the page shows what has become of it: only whoever has sent the form has it. */
  receipt: string;
}

/**
 * Books what was chosen on a booking page, for whoever is invited or, if nobody is, for the person who has filled in its
 * form. Again, for the same person: nothing happens. If the rules or the caller say so, and for an address with more
 * bookings than the rules permit, it is only stored, and whoever has the address confirms it by a mail, unless they are
 * invited. Rejects as {@link openBookingPage}, with `booking_page.offer_not_found`, `booking.invalid`, or as
 * {@link bookChoice}, with `booking_page.limit_reached` only to those who are invited.
 */
export async function bookPageTime(
  dependencies: CalendarDependencies,
  { providerId, invitation, ...request }: PageBookingRequest,
): Promise<SentForm> {
  const page = await openBookingPage(dependencies, { providerId, invitation });
  return dependencies.pages.countRefusal('form', page.crmId, send(dependencies, page, request));
}

async function send(
  dependencies: CalendarDependencies,
  page: BookingPage,
  { offer: key, stepUp, ...booking }: Omit<PageBookingRequest, keyof PageVisit>,
): Promise<SentForm> {
  const { pages } = dependencies;
  const isInvited = page.invited !== undefined;
  const offer = requireOffer(page, { offer: key, resourceReference: booking.resourceReference });
  checkBooking(page, booking);
  const found = await findChoice(dependencies, page, booking.choice);
  const made = ifBooked(found);
  if (made !== undefined) {
    // Only by the mail is it known whose it is.
    if (page.verifyEmail && !isInvited) throw new DomainError('booking_page.choice_used');
    const booked = await requireOwn(dependencies, page, made.participationId, booking);
    return { page, pending: false, receipt: receiptOf(dependencies, page, booked) };
  }
  if (isInvited || (!page.verifyEmail && !stepUp)) {
    try {
      const maxOfDay = daysFactor * page.maxPerPerson;
      const booked = await bookChoice(dependencies, page, offer, { ...booking, maxOfDay });
      pages.sent(page.crmId, page.confirmation === 'BOOKED' ? 'booked' : 'requested');
      return { page, pending: false, receipt: receiptOf(dependencies, page, booked) };
    } catch (error) {
      if (isInvited || !(error instanceof DomainError) || error.code !== 'booking_page.limit_reached') throw error;
    }
  }
  const { shown } = await findChosenPlace(dependencies, page, offer, { booking, ...(found && { hold: found }) });
  const receipt = await storePendingBooking(dependencies, page, offer, { ...booking, place: shown });
  pages.sent(page.crmId, 'pending');
  return { page, pending: true, receipt };
}

/**
 * How many times as many bookings as a person may have can be made for an address in a day, if the others are
 * cancelled: each of them is a mail to somebody who may not have asked for it.
 */
const daysFactor = 2;

/** Characters of what a person writes to the provider. */
const maxNoteLength = 500;

/** Pages check what people type; this is what the rules say, and what is stored. */
function checkBooking({ askMobile, invited }: BookingPage, { choice, name, email, mobile, note }: ChosenBooking): void {
  const errors = collectFieldErrors();
  if (!isUuid(choice)) errors.add('/choice', 'must be a UUID');
  if (invited === undefined) {
    if (name.trim() === '') errors.add('/name', 'is required');
    if (!isEmailAddress(email)) errors.add('/email', 'must be an e-mail address');
    if (askMobile === 'REQUIRED' && !mobile) errors.add('/mobile', 'is required');
  }
  if (Array.from(note ?? '').length > maxNoteLength)
    errors.add('/note', `must have at most ${maxNoteLength} characters`);
  errors.throwIfAny('booking.invalid');
}
