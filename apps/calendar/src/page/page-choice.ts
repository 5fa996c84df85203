import { originJson } from '@scheduling/messaging';
import { callFunction } from '@scheduling/postgres';
import { isUuid, nameUuid } from '@scheduling/runtime';
import type { Location, ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type BookingPage, lengthOf, type OfferChoice, type PageOffer } from './booking-page.ts';

/**
 * What has become of a choice on a booking page, which is known by a random UUID: it was held, or booked. See
 * read-page-choice.sql. Times are ISO 8601 texts.
 */
export interface ChoiceRow {
  participationId: string;
  reference: string;
  state: ParticipationState;
  /** Null unless it is held. */
  reservedUntil: string | null;
  appointmentReference: string;
  resourceReference: string;
  productReference: string;
  startsAt: string;
  endsAt: string;
  description: string | null;
  address: Location | null;
  priceValue: number | null;
  priceCurrency: string | null;
  /** Its appointment, if that ends when the hold does. */
  emptiedAppointmentId: string | null;
}

export function holdReference(choice: string): string {
  return `page-${choice}`;
}

/** Of a booking that is made without the hold: the hold may be over, and its reference still be taken. */
export function bookingReference(choice: string): string {
  return `page-${nameUuid(choice, 'booking')}`;
}

/** The booking that was made of a choice or, before, its hold; undefined if there is none, or no longer. */
export async function findChoice(
  { database }: CalendarDependencies,
  { crmId, providerId }: BookingPage,
  choice: string | undefined,
): Promise<ChoiceRow | undefined> {
  if (choice === undefined || !isUuid(choice)) return undefined;
  const request = { crmId, providerId, references: [holdReference(choice), bookingReference(choice)] };
  const row = await callFunction<ChoiceRow | null>(database.kysely, { name: 'read_page_choice', request });
  return row ?? undefined;
}

/** The same, if it was booked, which happens once. */
export function ifBooked(choice: ChoiceRow | undefined): ChoiceRow | undefined {
  return choice?.state === 'RESERVED' ? undefined : choice;
}

/** The same, if it is a hold. */
export async function findHold(
  dependencies: CalendarDependencies,
  page: BookingPage,
  choice: string | undefined,
): Promise<ChoiceRow | undefined> {
  const found = await findChoice(dependencies, page, choice);
  return found?.state === 'RESERVED' ? found : undefined;
}

/** Whether a hold is for what is offered, at this moment if one is given. */
export function isHoldOf(
  hold: ChoiceRow,
  offer: PageOffer,
  { resourceReference, start }: Pick<OfferChoice, 'resourceReference'> & { start?: Date },
): boolean {
  const [startsAt, endsAt] = [Date.parse(hold.startsAt), Date.parse(hold.endsAt)];
  return (
    hold.productReference === offer.productReference &&
    endsAt - startsAt === lengthOf(offer) &&
    offer.resources.some((resource) => resource.resourceReference === hold.resourceReference) &&
    (resourceReference === undefined || resourceReference === hold.resourceReference) &&
    (start === undefined || start.getTime() === startsAt)
  );
}

/** The place is free again at once, and not only when the hold would be over. */
export async function releaseHold(
  { database, bookings }: CalendarDependencies,
  { crmId }: BookingPage,
  { reference, appointmentReference }: ChoiceRow,
): Promise<void> {
  const request = { crmId, reference, origin: originJson() };
  const call = { name: 'release_page_hold', request, locks: appointmentReference };
  const { reclaimed } = await callFunction<{ reclaimed: number }>(database.kysely, call);
  database.committed();
  bookings.expired(database.kysely, reclaimed);
}
