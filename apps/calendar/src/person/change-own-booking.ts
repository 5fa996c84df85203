import { DomainError } from '@scheduling/errors';
import { originJson } from '@scheduling/messaging';
import type { CalendarDependencies } from '../dependencies.ts';
import { type BookingCall, settle } from '../participation/settle.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { lockOf, type Place, placeOf } from '../slot/place.ts';
import { lengthOf, type OwnBooking, readAgain, requireOwnBooking } from './own-booking.ts';
import { type OwnPlace, resourcesToMoveTo } from './own-place.ts';

/** Characters of a message that comes with a link. */
const maxMessageLength = 500;

/** Rejects with `participation.invalid`. */
export function checkMessageLength(message: string | undefined): void {
  if (message === undefined || Array.from(message).length <= maxMessageLength) return;
  const detail = `must have at most ${maxMessageLength} characters`;
  throw new DomainError('participation.invalid', { errors: [{ pointer: '/message', detail }] });
}

interface ShownBooking {
  token: string;
  /** That the person was shown; undefined: it is not compared. */
  start?: Date | undefined;
}

/**
 * Cancels a booking for its person; see cancel-own-booking.sql. Rejects with `link.not_found`, `link.too_late`,
 * `link.not_allowed`, `link.changed` for another start than the one that the person was shown, `participation.invalid`
 * for a message that is too long, or `participation.busy`.
 */
export async function cancelOwnBooking(
  dependencies: CalendarDependencies,
  { token, message, start }: ShownBooking & { message?: string | undefined },
): Promise<{ booking: OwnBooking; alreadyCancelled: boolean }> {
  checkMessageLength(message);
  const booking = await requireOwnBooking(dependencies, token);
  const request = { message, shownStart: start?.getTime() };
  const changed = await change(dependencies, booking, () => callOf(booking, 'cancel_own_booking', request));
  return { booking: changed.booking, alreadyCancelled: !changed.hasEntered };
}

/**
 * Notes that the person will be there; see confirm-attendance.sql. Rejects with `link.not_found`, `link.too_late`,
 * `link.not_allowed`, `link.changed` for another start than the one that the person was shown, or `participation.busy`.
 */
export async function confirmAttendance(
  dependencies: CalendarDependencies,
  { token, start }: ShownBooking,
): Promise<OwnBooking> {
  const booking = await requireOwnBooking(dependencies, token);
  const request = { shownStart: start?.getTime() };
  return (await change(dependencies, booking, () => callOf(booking, 'confirm_attendance', request))).booking;
}

/**
 * Moves a booking for its person to another place for the same product, as long and as expensive, by the public rules;
 * see move-booking.sql. Rejects with `link.not_found`, `link.too_late`, `link.not_allowed`, `slot.unavailable` and a
 * reason, `timeslot.not_found`, `appointment.not_found` or `participation.busy`.
 */
export async function moveOwnBooking(
  dependencies: CalendarDependencies,
  { token, place, start }: ShownBooking & { place: OwnPlace },
): Promise<OwnBooking> {
  const booking = await requireOwnBooking(dependencies, token);
  const { reference: participationReference } = booking;
  const resources = await resourcesToMoveTo(dependencies, booking);
  const target = targetOf(place, booking);
  const call = ({ timeZone }: ProviderRow): BookingCall => ({
    name: 'move_booking',
    request: {
      ...placeOf(target, timeZone),
      participationReference,
      byPerson: true,
      resources,
      shownStart: start?.getTime(),
      ignoreNotice: false,
      sendMails: true,
      origin: originJson(),
    },
    locks: lockOf(target),
  });
  return (await change(dependencies, booking, call)).booking;
}

const minuteMs = 60_000;
/** What Postgres reads, and people write. */
const lastYear = 9_999;

function targetOf(place: OwnPlace, booking: OwnBooking): Place {
  if ('appointmentReference' in place) return place;
  const year = place.start.getUTCFullYear();
  if (!(year >= 1 && year <= lastYear)) throw new DomainError('slot.unavailable', { reason: 'closed' });
  const duration = Math.floor(lengthOf(booking) / minuteMs);
  return { timeslotReference: place.timeslotReference, start: place.start.toISOString(), duration };
}

function callOf({ participationId, appointmentReference }: OwnBooking, name: string, request: object): BookingCall {
  return { name, request: { ...request, participationId, origin: originJson() }, locks: appointmentReference };
}

/** The booking as it is afterwards, and whether it has entered another state. */
async function change(
  dependencies: CalendarDependencies,
  booking: OwnBooking,
  call: (provider: ProviderRow) => BookingCall,
): Promise<{ booking: OwnBooking; hasEntered: boolean }> {
  const { crmId, providerReference } = booking;
  const work = settle(dependencies, { provider: { crmId, providerReference }, call, busy: 'participation.busy' });
  const { entered } = await dependencies.bookings.countRefusal(crmId, work).catch(translateMissing);
  return { booking: await readAgain(dependencies, booking), hasEntered: Boolean(entered) };
}

/** It has gone since the token was read. */
export function translateMissing(error: unknown): never {
  if (error instanceof DomainError && error.code === 'participation.not_found') throw new DomainError('link.not_found');
  throw error;
}
