import { DomainError } from '@scheduling/errors';
import { originJson } from '@scheduling/messaging';
import { callFunction, isAddress } from '@scheduling/postgres';
import { isUuid } from '@scheduling/runtime';
import { type Selectable, sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import type { CalendarSchema, PendingBookingTable } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { bookChoice, type ChosenBooking, receiptOf, requireOwn } from './book-choice.ts';
import { type BookingPage, type PageOffer, requireBookingPage, requireOffer, requirePublic } from './booking-page.ts';
import { type ChoiceRow, findChoice, ifBooked, isHoldOf } from './page-choice.ts';
import { heldPlace, type PagePlace, readPlacesAt, toPagePlace } from './page-places.ts';

type PendingBooking = Selectable<PendingBookingTable>;

/** How long the link in the mail works. */
const linkMinutes = 30;

/**
 * Stores it, and has the mail written; see store-pending-booking.sql. Returns the receipt of whoever has sent the form.
 */
export async function storePendingBooking(
  { database, links }: CalendarDependencies,
  { crmId, providerId }: BookingPage,
  offer: PageOffer,
  { place, price, start, ...booking }: ChosenBooking & { place: PagePlace },
): Promise<string> {
  const request = {
    ...booking,
    crmId,
    providerId,
    id: randomUUIDv7(),
    offer: offer.key,
    description: place.description ?? offer.name,
    startsAt: start,
    endsAt: place.end,
    address: place.address,
    priceValue: price?.value,
    priceCurrency: price?.currency,
    minutes: linkMinutes,
    origin: originJson(),
  };
  const call = { name: 'store_pending_booking', request, locks: booking.email };
  const { id: pendingBookingId } = await callFunction<{ id: string }>(database.kysely, call);
  database.committed();
  return links.issue({ purpose: 'pending', crmId, pendingBookingId }, booking.email);
}

export interface ShownPendingBooking {
  page: BookingPage;
  pending: PendingBooking;
  /** Undefined if it cannot be booked any more, or has been. */
  place?: PagePlace;
  /** Of the booking, once it is made. */
  receipt?: string;
}

/**
 * What a person is to confirm, by the token in their mail. Rejects with `link.not_found`, `booking_page.not_found`,
 * `booking_page.choice_used`, `booking_page.offer_not_found`, or `booking_page.invited_only` if it has not been
 * confirmed.
 */
export async function getPendingBooking(
  dependencies: CalendarDependencies,
  token: string,
): Promise<ShownPendingBooking> {
  const { page, pending } = await requirePendingBooking(dependencies, token);
  const found = await findChoice(dependencies, page, pending.choice);
  const made = ifBooked(found);
  if (made !== undefined) return { page, pending, receipt: await receiptFor(dependencies, page, pending, made) };
  requirePublic(page);
  const { resourceReference, startsAt: start } = pending;
  const offer = requireOffer(page, { offer: pending.offer, resourceReference });
  if (found !== undefined && isHoldOf(found, offer, { resourceReference, start }))
    return { page, pending, place: heldPlace(found) };
  const [place] = await readPlacesAt(dependencies, page, offer, start);
  return { page, pending, ...(place && { place: toPagePlace(place, offer) }) };
}

/**
 * Books it for the person who has confirmed their address, at a time that may be another one than they chose first.
 * Again: nothing happens. Rejects as {@link bookChoice} and {@link getPendingBooking} do.
 */
export async function confirmPendingBooking(
  dependencies: CalendarDependencies,
  { token, ...chosen }: Pick<ChosenBooking, 'resourceReference' | 'start' | 'price'> & { token: string },
): Promise<{ page: BookingPage; receipt: string }> {
  const { page, pending } = await requirePendingBooking(dependencies, token);
  const { crmId, id, choice, email, language } = pending;
  const made = ifBooked(await findChoice(dependencies, page, choice));
  if (made !== undefined) return { page, receipt: await receiptFor(dependencies, page, pending, made) };
  // What is gone since stays so.
  if (pending.customerId !== null) throw new DomainError('link.not_found');
  requirePublic(page);
  const offer = requireOffer(page, { offer: pending.offer, resourceReference: chosen.resourceReference });
  const booking = { ...chosen, ...personOf(pending), choice, note: pending.note ?? undefined, language };
  const { pages, database } = dependencies;
  const booked = await pages.countRefusal('form', crmId, bookChoice(dependencies, page, offer, booking));
  pages.sent(crmId, page.confirmation === 'BOOKED' ? 'booked' : 'requested');
  await markBooked(database, { crmId, id, participationId: booked.participationId });
  await forgetMails(database.kysely, crmId, email);
  return { page, receipt: receiptOf(dependencies, page, booked) };
}

async function receiptFor(
  dependencies: CalendarDependencies,
  page: BookingPage,
  pending: PendingBooking,
  { participationId }: ChoiceRow,
): Promise<string> {
  return receiptOf(dependencies, page, await requireOwn(dependencies, page, participationId, personOf(pending)));
}

function personOf({ name, email, mobile }: PendingBooking): {
  name: string;
  email: string;
  mobile: string | undefined;
} {
  return { name, email, mobile: mobile ?? undefined };
}

/** An erasure of its customer finds it from now on, whatever address they have. */
async function markBooked(
  { kysely }: CalendarDependencies['database'],
  { crmId, id, participationId }: { crmId: string; id: string; participationId: string },
): Promise<void> {
  await kysely
    .updateTable('pendingBooking')
    .set((eb) => ({
      customerId: eb
        .selectFrom('participation')
        .select('customerId')
        .where('crmId', '=', crmId)
        .where('id', '=', participationId),
    }))
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .execute();
}

export interface PendingBookingMailData extends Pick<
  PendingBooking,
  'providerId' | 'name' | 'email' | 'language' | 'description' | 'startsAt' | 'endsAt' | 'address' | 'expiresAt'
> {
  timeZone: string;
  priceValue: number | null;
  priceCurrency: string | null;
  requested: boolean;
  maxPerPerson: number;
  /** Undefined while the address has as many bookings as the rules permit. */
  token: string | undefined;
}

/** What the mail says, as it is now. Rejects with `link.not_found`, or `booking_page.not_found`. */
export async function getPendingBookingMailData(
  dependencies: CalendarDependencies,
  { crmId, pendingBookingId }: { crmId: string; pendingBookingId: string },
): Promise<PendingBookingMailData> {
  const pending = await findPendingBooking(dependencies, { crmId, pendingBookingId });
  if (pending === undefined) throw new DomainError('link.not_found');
  const { timeZone, confirmation, maxPerPerson } = await requireBookingPage(dependencies, pending.providerId);
  const { email } = pending;
  const count = await countFutureBookings(dependencies, pending);
  const token =
    count < maxPerPerson ? dependencies.links.issue({ purpose: 'confirm', crmId, pendingBookingId }, email) : undefined;
  return { ...pending, timeZone, requested: confirmation === 'REQUESTED', maxPerPerson, token };
}

/** Nothing of what somebody with an address wanted to book is left, in any form of it. */
export async function forgetAddress(
  { database }: Pick<CalendarDependencies, 'database'>,
  { crmId, email }: { crmId: string; email: string },
): Promise<void> {
  await database.transaction(async (tx) => {
    await tx
      .deleteFrom('pendingBooking')
      .where('crmId', '=', crmId)
      .where(isAddress(sql`email`, email))
      .execute();
    await forgetMails(tx, crmId, email);
  });
}

/** Without these, the address gets mails again. */
async function forgetMails(
  db: CalendarDependencies['database']['kysely'] | Transaction<CalendarSchema>,
  crmId: string,
  email: string,
): Promise<void> {
  const request = { crmId, email };
  await callFunction(db, { name: 'forget_verification_mails', request, locks: email });
}

async function requirePendingBooking(
  dependencies: CalendarDependencies,
  token: string,
): Promise<{ page: BookingPage; pending: PendingBooking }> {
  const link = dependencies.links.read(token);
  const pending = link?.purpose === 'confirm' ? await findPendingBooking(dependencies, link) : undefined;
  if (pending === undefined || !dependencies.links.isIssued(token, pending.email))
    throw new DomainError('link.not_found');
  return { page: await requireBookingPage(dependencies, pending.providerId), pending };
}

/** Undefined if it is over. */
export function findPendingBooking(
  { database }: CalendarDependencies,
  { crmId, pendingBookingId }: { crmId: string; pendingBookingId: string },
): Promise<PendingBooking | undefined> {
  if (!isUuid(pendingBookingId)) return Promise.resolve(undefined);
  return database.kysely
    .selectFrom('pendingBooking')
    .selectAll()
    .select(sql<number | null>`price_value::float8`.as('priceValue'))
    .where('crmId', '=', crmId)
    .where('id', '=', pendingBookingId)
    .where('expiresAt', '>', sql<Date>`clock_timestamp()`)
    .executeTakeFirst();
}

function countFutureBookings(
  { database }: CalendarDependencies,
  { crmId, providerId, email }: PendingBooking,
): Promise<number> {
  const call = { name: 'count_future_bookings', request: { crmId, providerId, email }, locks: email };
  return callFunction<number>(database.kysely, call);
}
