import { collectFieldErrors } from '@scheduling/errors';
import { originJson } from '@scheduling/messaging';
import type { NamedCustomer } from '../customer/customer-copy.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { readParticipation } from '../participation/read-participation.ts';
import { type BookingCall, settle, type Settled } from '../participation/settle.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type Booking, readBooking } from './booking.ts';
import { lockOf, type Place, placeOf } from './place.ts';

export interface BookingChange {
  crmId: string;
  providerReference: string;
  participationReference: string;
  /** Where it moves. Absent: a hold is confirmed. */
  place?: Place | undefined;
  /** Whose hold it is, if it has no customer yet. */
  customer?: NamedCustomer | undefined;
  message?: string | undefined;
  ignoreNotice: boolean;
  sendMails: boolean;
}

/**
 * Moves a booking to another slot, or confirms a hold and says whose it is (interface 10.3); see move-booking.sql and
 * confirm-hold.sql. Where it is already, nothing changes. A rejected change changes nothing. Rejects with
 * `booking.invalid`, `slot.unavailable` and a reason, `participation.move_not_allowed`, `booking.customer_missing`,
 * `appointment.cancelled`, `participation.capacity_exhausted`, `provider.not_found`, `participation.not_found`,
 * `timeslot.not_found`, `appointment.not_found`, `customer.not_found` or `slot.busy`.
 */
export async function changeBooking(
  dependencies: CalendarDependencies,
  request: BookingChange,
): Promise<Settled<Booking>> {
  const { crmId, providerReference, place, customer } = request;
  const errors = collectFieldErrors();
  if (place !== undefined && customer !== undefined)
    errors.add('/customerReference', 'cannot be given together with a slot');
  errors.throwIfAny('booking.invalid');
  return settle(dependencies, {
    provider: { crmId, providerReference },
    customer,
    call: (provider) =>
      place === undefined ? confirmationCall(dependencies, provider, request) : moveCall(provider, place, request),
    read: (participationId) => readBooking(dependencies, request, participationId),
    notFound: 'participation.not_found',
    busy: 'slot.busy',
  });
}

async function confirmationCall(
  { database }: CalendarDependencies,
  { id: providerId }: ProviderRow,
  { crmId, participationReference: reference, customer, message, sendMails }: BookingChange,
): Promise<BookingCall> {
  const present = await readParticipation(database.kysely, { crmId, providerId, reference });
  const request = {
    participationId: present?.id,
    customerReference: customer?.customerReference,
    state: 'BOOKED',
    message,
    sendMails,
    origin: originJson(),
  };
  return { name: 'confirm_hold', request, locks: present?.appointmentReference ?? '' };
}

function moveCall({ timeZone }: ProviderRow, place: Place, change: BookingChange): BookingCall {
  const { participationReference, ignoreNotice, message, sendMails } = change;
  const request = {
    ...placeOf(place, timeZone),
    participationReference,
    ignoreNotice,
    message,
    sendMails,
    origin: originJson(),
  };
  return { name: 'move_booking', request, locks: lockOf(place) };
}
