import type { Customer } from '@scheduling/contracts/customer/v1';
import { collectFieldErrors, DomainError, type SlotReason } from '@scheduling/errors';
import { callOnce, type FunctionCall, isUniqueViolation } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { fetchIfKnown, type NamedCustomer } from '../customer/customer-copy.ts';
import { Preparation, preparedContent } from '../customer/preparation.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { changeOrigin } from '../events/append-events.ts';
import type { BookingMetrics } from '../participation/booking-metrics.ts';
import { isActive, mailsOnCreation, type ParticipationState, takesSeat } from '../participation/moves.ts';
import { type ParticipationRecord, reservationSeconds } from '../participation/participation.ts';
import { reclaimReservations } from '../participation/reclaim-reservations.ts';
import type { ProviderRow } from '../provider/provider-copy.ts';
import { type ProviderChanged, withRememberedProvider } from '../provider/remembered-providers.ts';
import { lockOf, type Place, placeOf, slotUnavailable } from './place.ts';
import { readBooking, slotOf } from './read-booking.ts';
import type { Booking, SlotRecord } from './slot.ts';

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
  ignoreNotice: boolean;
  sendMails: boolean;
}

export interface CreatedBooking {
  booking: Booking;
  created: boolean;
}

/**
 * Others may change the timeslots at the same time; and one retry each to read the provider, to prepare the customer,
 * and to remove an expired reservation.
 */
const maxAttempts = 8;

/**
 * Books a slot (interface 10.2): appointment, participation, seat and event in one round trip, and no network call if
 * calendar knows the provider and the customer. A customer whom nobody knows is prepared once the place was found free,
 * and exists if the booking is made. If the reference exists for the same place and customer, its booking is returned
 * as it is now. Rejects with `slot.unavailable` and a reason, `booking.invalid`, `provider.not_found`,
 * `timeslot.not_found`, `appointment.not_found`, `customer.not_found`, `participation.reference_taken` or `slot.busy`.
 */
export async function bookSlot(dependencies: CalendarDependencies, request: NewBooking): Promise<CreatedBooking> {
  checkRequest(request);
  const id = randomUUIDv7();
  await using preparation = new Preparation(dependencies, request);
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const answer = await withRememberedProvider(dependencies, request, (provider) =>
      tryToBook(dependencies, { provider, id, request, prepared: preparation.customer }),
    );
    switch (answer) {
      case 'customer_unknown':
        await preparation.provide(request.customer!);
        break;
      case 'owner_unknown':
        // A customer who does not exist yet is not the owner of a participation that exists.
        if ((await fetchIfKnown(dependencies, request, request.customer!.customerReference)) === undefined)
          throw new DomainError('participation.reference_taken');
        break;
      case 'reference_expired':
        await reclaimReservations(dependencies, request.crmId, [request.reference]);
        break;
      case 'provider_changed':
      case 'reference_unsettled':
      case 'stale':
        break;
      default:
        return answer;
    }
  }
  throw new DomainError('slot.busy');
}

function checkRequest({ place, state, customer }: NewBooking): void {
  const errors = collectFieldErrors();
  if (!isActive(state)) errors.add('/state', 'must be RESERVED, REQUESTED or BOOKED');
  if (state !== 'RESERVED' && customer === undefined)
    errors.add('/customerReference', 'is required unless the state is RESERVED');
  if ('timeslotReference' in place && place.productReference === undefined)
    errors.add('/productReference', 'is required');
  errors.throwIfAny('booking.invalid');
}

/**
 * Why an attempt failed in a way that a retry can fix; `owner_unknown`: the participation exists, and calendar does not
 * know whom the reference means.
 */
type Obstacle =
  | ProviderChanged
  | 'customer_unknown'
  | 'owner_unknown'
  | 'reference_expired'
  | 'reference_unsettled'
  | 'stale';

interface Attempt {
  provider: ProviderRow;
  /** Of the participation. */
  id: string;
  request: NewBooking;
  /** The provisional customer for whom it is. */
  prepared?: Customer | undefined;
}

async function tryToBook(
  { database, bookings }: CalendarDependencies,
  attempt: Attempt,
): Promise<CreatedBooking | Obstacle> {
  const { id, request } = attempt;
  const { crmId } = request;
  try {
    return await callOnce(database, crmId, {
      call: bookingCall(attempt),
      work: (db, answer: BookingResult) => completeBooking(db, bookings, { id, request, answer }),
      keep: (answer) =>
        typeof answer === 'string'
          ? undefined
          : { resourceIds: [answer.booking.participation.id], created: answer.created },
      replay: async (db, { resourceIds, created }) => {
        const booking = await readBooking(db, request, resourceIds[0]!);
        if (booking === undefined) throw new DomainError('participation.not_found');
        return { booking, created };
      },
    });
  } catch (error) {
    // Created concurrently: the next attempt finds it, or finds it gone.
    if (isUniqueViolation(error, 'participation_reference_key')) return 'reference_unsettled';
    throw error;
  }
}

async function completeBooking(
  db: Kysely<CalendarSchema>,
  bookings: BookingMetrics,
  { id, request, answer }: { id: string; request: NewBooking; answer: BookingResult },
): Promise<CreatedBooking | Obstacle> {
  bookings.expired(db, answer.reclaimed ?? 0);
  switch (answer.outcome) {
    case 'created':
      bookings.moved(db, request.crmId, undefined, request.state);
      return {
        booking: { participation: createdRecord(id, request, answer), slot: slotOf(request.place, answer.slot) },
        created: true,
      };
    case 'exists': {
      const booking = await readBooking(db, request, answer.participationId);
      return booking === undefined ? 'reference_unsettled' : { booking, created: false };
    }
    case 'customer_unknown':
      return answer.participationId === undefined ? 'customer_unknown' : 'owner_unknown';
    case 'provider_changed':
    case 'reference_expired':
    case 'stale':
      return answer.outcome;
    case 'timeslot_unknown':
      throw new DomainError('timeslot.not_found');
    case 'appointment_unknown':
      throw new DomainError('appointment.not_found');
    case 'reference_taken':
      throw new DomainError('participation.reference_taken');
    case 'unavailable':
      throw slotUnavailable(answer.reason);
  }
}

/** See book-slot.sql. */
type BookingResult = { reclaimed?: number } & (
  | {
      outcome: 'created';
      slot: SlotRecord;
      name: string | null;
      email: string | null;
      mobile: string | null;
      reservedUntil: string | null;
    }
  | { outcome: 'exists'; participationId: string }
  | { outcome: 'unavailable'; reason: SlotReason }
  | { outcome: 'customer_unknown'; participationId?: string }
  | {
      outcome:
        | 'provider_changed'
        | 'timeslot_unknown'
        | 'appointment_unknown'
        | 'reference_taken'
        | 'reference_expired'
        | 'stale';
    }
);

/** See book-slot.sql. */
export function bookingCall({ provider, id, request, prepared }: Attempt): FunctionCall {
  const { crmId, place, reference, state, customer, message = null, ignoreNotice } = request;
  const booking = {
    crmId,
    providerId: provider.id,
    providerVersion: provider.version,
    ...placeOf(place, provider.timeZone),
    ignoreNotice,
    id,
    reference,
    customerReference: customer?.customerReference ?? null,
    ...(prepared && { prepared: preparedContent(prepared) }),
    state,
    takesSeat: takesSeat(state),
    reservationSeconds,
    message,
    origin: changeOrigin(request.sendMails && mailsOnCreation(state)),
  };
  return { name: 'book_slot', request: booking, locks: lockOf(place) };
}

function createdRecord(
  id: string,
  { reference, state, message, customer }: NewBooking,
  result: BookingResult & { outcome: 'created' },
): ParticipationRecord {
  return {
    id,
    reference,
    appointmentReference: result.slot.appointmentReference,
    customerReference: customer?.customerReference ?? null,
    name: result.name ?? '',
    email: result.email,
    mobile: result.mobile,
    note: null,
    state,
    messages: message === undefined ? [] : [message],
    reservedUntil: result.reservedUntil === null ? null : new Date(result.reservedUntil),
  };
}
