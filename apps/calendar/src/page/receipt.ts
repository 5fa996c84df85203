import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import type { CalendarDependencies } from '../dependencies.ts';
import type { Link } from '../person/link-token.ts';
import { findOwnBooking, type OwnBooking } from '../person/own-booking.ts';
import { issueParticipationLink } from '../person/participation-link.ts';
import { isSelfService } from '../slot/booking-rules.ts';
import { type BookingPage, openBookingPage, type PageVisit, requireBookingPage } from './booking-page.ts';
import { findPendingBooking } from './pending-booking.ts';

/** What the page shows to whoever has sent its form. */
export interface Receipt {
  page: BookingPage;
  /** Undefined if it is to be confirmed. */
  booking?: OwnBooking;
  /** Of the person's link; undefined if the rules say that there is none. */
  token?: string | undefined;
  /** Of a booking that is to be confirmed: to where the mail goes. */
  email?: string;
}

/** How long a page shows what was booked there: the link in the mail goes on showing it. */
const shownMs = 3_600_000;

/**
 * What was booked, for an hour of real time after its place was taken, or where the mail goes that confirms it. Rejects
 * with `booking_page.not_found`, or with `link.not_found` for a receipt that does not work, or no longer. With an
 * invitation that works, the page is that of its customer.
 */
export async function readReceipt(
  dependencies: CalendarDependencies,
  { providerId, invitation, receipt }: PageVisit & { receipt: string },
): Promise<Receipt> {
  const page = await findPage(dependencies, { providerId, invitation });
  const shown = await readShown(dependencies, page, dependencies.links.read(receipt));
  if (shown === undefined || !dependencies.links.isIssued(receipt, shown.email))
    throw new DomainError('link.not_found');
  return shown.receipt;
}

/** Whoever has booked sees it, also if the invitation has ended since. */
async function findPage(dependencies: CalendarDependencies, visit: PageVisit): Promise<BookingPage> {
  const page = visit.invitation && (await undefinedIfNotFound(openBookingPage(dependencies, visit)));
  return page || requireBookingPage(dependencies, visit.providerId);
}

interface Shown {
  receipt: Receipt;
  /** To which the receipt was issued, if it was. */
  email: string | undefined;
}

async function readShown(
  dependencies: CalendarDependencies,
  page: BookingPage,
  link: Link | undefined,
): Promise<Shown | undefined> {
  if (link?.purpose === 'receipt') return readBooking(dependencies, page, link);
  return link?.purpose === 'pending' ? readPending(dependencies, page, link) : undefined;
}

async function readBooking(
  dependencies: CalendarDependencies,
  page: BookingPage,
  { crmId, participationId }: { crmId: string; participationId: string },
): Promise<Shown | undefined> {
  if (Date.now() > madeAt(participationId) + shownMs) return undefined;
  const booking = await findOwnBooking(dependencies, { crmId, participationId });
  if (booking?.providerId !== page.providerId) return undefined;
  const email = booking.email ?? undefined;
  const token = isSelfService({ ...page, page: true })
    ? issueParticipationLink(dependencies, { crmId, participationId, email })
    : undefined;
  return { receipt: { page, booking, token }, email };
}

async function readPending(
  dependencies: CalendarDependencies,
  page: BookingPage,
  link: { crmId: string; pendingBookingId: string },
): Promise<Shown | undefined> {
  const pending = await findPendingBooking(dependencies, link);
  if (pending?.providerId !== page.providerId) return undefined;
  const { email } = pending;
  return { receipt: { page, email }, email };
}

/** In epoch milliseconds: the first 48 bits of a UUIDv7. */
function madeAt(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
}
