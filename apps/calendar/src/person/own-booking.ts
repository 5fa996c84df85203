import { DomainError, undefinedIfNotFound } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import type { Location, ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';

/** A booking as its person sees it. */
export interface OwnBooking extends OwnBookingRow, Person {
  crmId: string;
}

/** See read-own-booking.sql. Times are ISO 8601 texts. */
export interface OwnBookingRow {
  participationId: string;
  reference: string;
  version: number;
  state: ParticipationState;
  /** Null for a participant embedded in the creation of the appointment, who has a name and perhaps an address here. */
  customerId: string | null;
  name: string | null;
  email: string | null;
  reservedUntil: string | null;
  attendanceConfirmedAt: string | null;
  providerId: string;
  providerReference: string;
  timeZone: string;
  appointmentReference: string;
  description: string | null;
  startsAt: string;
  endsAt: string;
  address: Location | null;
  priceValue: number | null;
  priceCurrency: string | null;
  productReference: string;
  resourceReference: string;
  /** Its appointment, if that ends when the booking leaves it. */
  emptiedAppointmentId: string | null;
  /** By the CRM's clock. */
  now: string;
  /** Until when it can be cancelled, or could be, in its state; null: in none such. The same goes for moving it. */
  cancellableUntil: string | null;
  movableUntil: string | null;
  cancellable: boolean;
  movable: boolean;
  confirmable: boolean;
}

interface Person {
  name: string | null;
  email: string | null;
  /** Language tag. */
  language: string | null;
}

/**
 * The booking of a token, with its person as the customer service knows them at this moment. Rejects with
 * `link.not_found` for every token that does not work, whatever the reason, and with `service.unavailable` if the
 * customer service does not answer.
 */
export async function requireOwnBooking(dependencies: CalendarDependencies, token: string): Promise<OwnBooking> {
  const { links } = dependencies;
  const link = links.read(token);
  const booking = link?.purpose === 'booking' ? await findOwnBooking(dependencies, link) : undefined;
  if (booking === undefined || !links.isIssued(token, booking.email ?? undefined))
    throw new DomainError('link.not_found');
  return booking;
}

/**
 * A booking to which a link works, with its person as the customer service knows them at this moment; undefined if none
 * does. Rejects with `service.unavailable` if the customer service does not answer.
 */
export async function findOwnBooking(
  dependencies: CalendarDependencies,
  key: { crmId: string; participationId: string },
): Promise<OwnBooking | undefined> {
  const row = await readOwnBooking(dependencies, key);
  const person = row && (await findPerson(dependencies, key.crmId, row));
  return person && { ...row, ...person, crmId: key.crmId };
}

/** The same booking as it is now, of a person who was found a moment ago. Rejects with `link.not_found`. */
export async function readAgain(dependencies: CalendarDependencies, booking: OwnBooking): Promise<OwnBooking> {
  const row = await readOwnBooking(dependencies, booking);
  if (row === undefined) throw new DomainError('link.not_found');
  const { crmId, name, email, language } = booking;
  return { ...row, crmId, name, email, language };
}

/** How long it is, in milliseconds. */
export function lengthOf({ startsAt, endsAt }: OwnBooking): number {
  return Date.parse(endsAt) - Date.parse(startsAt);
}

async function readOwnBooking(
  { database }: CalendarDependencies,
  { crmId, participationId }: { crmId: string; participationId: string },
): Promise<OwnBookingRow | undefined> {
  const call = { name: 'read_own_booking', request: { crmId, participationId } };
  return (await callFunction<OwnBookingRow | null>(database.kysely, call)) ?? undefined;
}

/**
 * Calendar's copy may not know yet that an address was corrected, and then a link would still work for whoever has the
 * wrong one. Undefined for somebody who has been erased.
 */
async function findPerson(
  { customers }: CalendarDependencies,
  crmId: string,
  { customerId, name, email }: OwnBookingRow,
): Promise<Person | undefined> {
  if (customerId === null) return { name, email, language: null };
  const recipient = await undefinedIfNotFound(customers.getRecipient({ crmId, customerId }));
  return recipient && { name: recipient.name, email: recipient.email ?? null, language: recipient.language ?? null };
}
