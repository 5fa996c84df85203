import type { Customer } from '@scheduling/contracts/customer/v1';
import { collectFieldErrors, DomainError, type SlotReason } from '@scheduling/errors';
import { callFunction, type FunctionCall, runOnce } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import { fetchIfKnown, findCustomerId, type NamedCustomer } from '../customer/customer-copy.ts';
import { Preparation } from '../customer/preparation.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { changeOrigin } from '../events/append-events.ts';
import {
  findParticipation,
  type MovableParticipation,
  moveParticipation,
} from '../participation/move-participation.ts';
import { takesSeat } from '../participation/moves.ts';
import { type ProviderRow, requireProvider } from '../provider/provider-copy.ts';
import type { ProviderChanged } from '../provider/remembered-providers.ts';
import { lockOf, type Place, placeOf, slotUnavailable } from './place.ts';
import { readBooking } from './read-booking.ts';
import type { Booking } from './slot.ts';

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

const maxAttempts = 8;

/**
 * Moves a booking to another slot, or confirms a hold and says whose it is (interface 10.3). Where it is already,
 * nothing changes. A rejected change changes nothing. Rejects with `booking.invalid`, `slot.unavailable` and a reason,
 * `participation.move_not_allowed`, `booking.customer_missing`, `appointment.cancelled`, `provider.not_found`,
 * `participation.not_found`, `timeslot.not_found`, `appointment.not_found`, `customer.not_found` or `slot.busy`.
 */
export async function changeBooking(dependencies: CalendarDependencies, request: BookingChange): Promise<Booking> {
  const errors = collectFieldErrors();
  if (request.place !== undefined && request.customer !== undefined)
    errors.add('/customerReference', 'cannot be given together with a slot');
  errors.throwIfAny('booking.invalid');
  await using preparation = new Preparation(dependencies, request);
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const changed = await tryToChange(dependencies, request, preparation.customer);
    if (typeof changed !== 'string') return changed;
    if (changed === 'customer_unknown') await preparation.provide(request.customer!);
    // A customer who does not exist yet is not the one of the booking.
    if (
      changed === 'owner_unknown' &&
      (await fetchIfKnown(dependencies, request, request.customer!.customerReference)) === undefined
    )
      throw notSameCustomer();
  }
  throw new DomainError('slot.busy');
}

/**
 * Why an attempt failed in a way that a retry can fix; `owner_unknown`: the booking has a customer, and calendar does
 * not know whom the reference means.
 */
type Obstacle = ProviderChanged | 'customer_unknown' | 'owner_unknown' | 'stale';

/** Calls no other service: with an `Idempotency-Key`, this is a transaction. */
async function tryToChange(
  dependencies: CalendarDependencies,
  request: BookingChange,
  prepared: Customer | undefined,
): Promise<Booking | Obstacle> {
  const { crmId, place } = request;
  const provider = await requireProvider(dependencies, request);
  const changed = await runOnce(dependencies.database, crmId, {
    work: async (db) => {
      const present = await findParticipation(db, {
        crmId,
        providerReference: request.providerReference,
        reference: request.participationReference,
      });
      if (present === undefined || present.expired) return undefined;
      const obstacle =
        place === undefined
          ? await confirmHold(dependencies, db, { provider, present, request, prepared })
          : await moveBooking(dependencies, db, { provider, present, place, request });
      return obstacle ?? readBooking(db, request, present.id);
    },
    keep: (answer) =>
      answer === undefined || typeof answer === 'string'
        ? undefined
        : { resourceIds: [answer.participation.id], created: false },
    replay: (db, { resourceIds }) => readBooking(db, request, resourceIds[0]!),
  });
  if (changed === undefined) throw new DomainError('participation.not_found');
  return changed;
}

interface Confirmation {
  provider: ProviderRow;
  present: MovableParticipation;
  request: BookingChange;
  /** The provisional customer whose it becomes. */
  prepared: Customer | undefined;
}

async function confirmHold(
  { bookings }: CalendarDependencies,
  db: Kysely<CalendarSchema>,
  { provider, present, request, prepared }: Confirmation,
): Promise<Obstacle | undefined> {
  const { crmId, customer, message, sendMails } = request;
  const { state, customerId } = present;
  if (state !== 'RESERVED' && state !== 'BOOKED') throw notAllowed(`A participation that is ${state} is not a hold.`);
  const isNew = state === 'RESERVED' && customerId === null;
  if (customer !== undefined && !isNew) {
    const named = await findCustomerId(db, { crmId, providerId: provider.id, reference: customer.customerReference });
    if (named === undefined) return 'owner_unknown';
    if (named !== customerId) throw notSameCustomer();
  }
  const owner =
    isNew && customer !== undefined
      ? { providerReference: request.providerReference, customerReference: customer.customerReference, prepared }
      : undefined;
  try {
    const confirmed = await moveParticipation(db, bookings, present, {
      state: 'BOOKED',
      message,
      sendMails,
      ignoreCapacity: false,
      customer: owner,
    });
    // Somebody else has confirmed it in the meantime, for a customer whom the next attempt compares.
    return owner !== undefined && confirmed.customerId !== null ? 'stale' : undefined;
  } catch (error) {
    if (error instanceof DomainError && error.code === 'customer.not_found') return 'customer_unknown';
    throw error;
  }
}

interface Relocation {
  provider: ProviderRow;
  present: MovableParticipation;
  place: Place;
  request: BookingChange;
}

async function moveBooking(
  { bookings }: CalendarDependencies,
  db: Kysely<CalendarSchema>,
  relocation: Relocation,
): Promise<Obstacle | undefined> {
  const { state } = relocation.present;
  if (state !== 'BOOKED' && state !== 'REQUESTED')
    throw notAllowed(`A participation that is ${state} cannot move to another slot.`);
  const { outcome, reclaimed = 0, reason } = await callFunction<MoveResult>(db, moveCall(relocation));
  bookings.expired(db, reclaimed);
  switch (outcome) {
    case 'moved':
      bookings.relocated(db, relocation.present.crmId);
      return undefined;
    case 'unchanged':
      return undefined;
    case 'provider_changed':
    case 'stale':
      return outcome;
    case 'timeslot_unknown':
      throw new DomainError('timeslot.not_found');
    case 'appointment_unknown':
      throw new DomainError('appointment.not_found');
    case 'unavailable':
      throw slotUnavailable(reason!);
  }
}

/** See move-booking.sql. */
interface MoveResult {
  outcome:
    | 'moved'
    | 'unchanged'
    | 'provider_changed'
    | 'stale'
    | 'timeslot_unknown'
    | 'appointment_unknown'
    | 'unavailable';
  reclaimed?: number;
  reason?: SlotReason;
}

function moveCall({ provider, present, place, request }: Relocation): FunctionCall {
  const { crmId, id, version, state, appointmentId } = present;
  const move = {
    crmId,
    providerId: provider.id,
    providerVersion: provider.version,
    ...placeOf(place, provider.timeZone),
    ignoreNotice: request.ignoreNotice,
    participationId: id,
    expectedVersion: version,
    appointmentId,
    takesSeat: takesSeat(state),
    message: request.message ?? null,
    origin: changeOrigin(request.sendMails),
  };
  return { name: 'move_booking', request: move, locks: lockOf(place) };
}

function notSameCustomer(): DomainError {
  return notAllowed('The booking is that of somebody else.');
}

function notAllowed(text: string): DomainError {
  return new DomainError('participation.move_not_allowed', { text });
}
