import { collectFieldErrors } from '@scheduling/errors';
import { originJson } from '@scheduling/messaging';
import { randomUUIDv7 } from 'node:crypto';
import type { NamedCustomer } from '../customer/customer-copy.ts';
import type { ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { settle, type Settled } from '../participation/settle.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type Booking, readBooking } from './booking.ts';
import { lockOf, type Place, placeOf } from './place.ts';

export interface NewBooking {
  crmId: string;
  providerReference: string;
  place: Place;
  /** The participation's. */
  reference: string;
  /** RESERVED, REQUESTED or BOOKED. */
  state: ParticipationState;
  /** One that the customer service knows, or one that it gets. Absent: a hold without a customer. */
  customer?: NamedCustomer | undefined;
  message?: string | undefined;
  /** Of the participation. */
  metadata?: Record<string, string> | null | undefined;
  ignoreNotice: boolean;
  sendMails: boolean;
}

/**
 * Books a slot (interface 10.2): appointment, participation, seat and event in one round trip; see book-slot.sql. If the
 * reference exists for the same place and customer, its booking is returned as it is now. Rejects with
 * `slot.unavailable` and a reason, `booking.invalid`, `provider.not_found`, `timeslot.not_found`,
 * `appointment.not_found`, `customer.not_found`, `participation.reference_taken` or `slot.busy`.
 */
export async function bookSlot(dependencies: CalendarDependencies, request: NewBooking): Promise<Settled<Booking>> {
  checkRequest(request);
  const { crmId, providerReference, reference, customer } = request;
  const id = randomUUIDv7();
  return settle(dependencies, {
    provider: { crmId, providerReference },
    customer,
    references: [reference],
    call: (provider) => bookingCall(provider, id, request),
    read: (participationId) => readBooking(dependencies, request, participationId),
    notFound: 'participation.not_found',
    busy: 'slot.busy',
  });
}

function checkRequest({ place, state, customer }: NewBooking): void {
  const errors = collectFieldErrors();
  if (state === 'CANCELED' || state === 'DELETED') errors.add('/state', 'must be RESERVED, REQUESTED or BOOKED');
  if (state !== 'RESERVED' && customer === undefined)
    errors.add('/customerReference', 'is required unless the state is RESERVED');
  if ('timeslotReference' in place && place.productReference === undefined)
    errors.add('/productReference', 'is required');
  errors.throwIfAny('booking.invalid');
}

/**
 * See book-slot.sql.
 *
 * @param id of the participation
 */
export function bookingCall({ timeZone }: Pick<ProviderRow, 'timeZone'>, id: string, booking: NewBooking) {
  const { place, reference, state, customer, message, metadata, ignoreNotice, sendMails } = booking;
  const participation = {
    id,
    reference,
    customerReference: customer?.customerReference,
    state,
    message,
    metadata,
    sendMails,
    origin: originJson(),
  };
  return {
    name: 'book_slot',
    request: { ...placeOf(place, timeZone), ...participation, ignoreNotice },
    locks: lockOf(place),
  };
}
