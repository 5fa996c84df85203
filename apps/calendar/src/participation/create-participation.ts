import { DomainError } from '@scheduling/errors';
import { callOnce, type FunctionCall, isUniqueViolation } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { fetchCustomer } from '../customer/customer-copy.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { changeOrigin } from '../events/append-events.ts';
import { fetchProvider } from '../provider/provider-copy.ts';
import type { BookingMetrics } from './booking-metrics.ts';
import { findParticipation, moveParticipation, type RequestedMove } from './move-participation.ts';
import { isActive, mailsOnCreation, takesSeat } from './moves.ts';
import {
  capacityExhausted,
  type ParticipationRecord,
  requireParticipation,
  reservationSeconds,
} from './participation.ts';
import { reclaimReservations } from './reclaim-reservations.ts';

export interface NewParticipation extends RequestedMove {
  crmId: string;
  providerReference: string;
  reference: string;
  appointmentReference: string;
  customerReference: string;
  onDuplicateRaise: boolean;
}

/**
 * One retry each to fetch the provider, fetch the customer and remove an expired reservation, plus a few for races on
 * the same reference.
 */
const maxAttempts = 8;

/**
 * Books (interface 4.3): participation, seat and event in one round trip, and no network call if calendar knows the
 * provider and the customer. If the reference exists, its participation is moved to the state instead, or the request
 * is rejected. Rejects with `provider.not_found`, `appointment.not_found`, `customer.not_found`,
 * `appointment.cancelled`, `participation.capacity_exhausted`, `participation.reference_taken` or
 * `participation.move_not_allowed`.
 */
export async function createParticipation(
  dependencies: CalendarDependencies,
  request: NewParticipation,
): Promise<CreatedParticipation> {
  const id = randomUUIDv7();
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const answer = await tryToBook(dependencies, id, request);
    switch (answer) {
      case 'provider_unknown':
        await fetchProvider(dependencies, request);
        break;
      case 'customer_unknown':
        await fetchCustomer(dependencies, request);
        break;
      case 'reference_expired':
        await reclaimReservations(dependencies, request.crmId, [request.reference]);
        break;
      case 'reference_unsettled':
        break;
      default:
        return answer;
    }
  }
  throw new DomainError('participation.busy');
}

interface CreatedParticipation {
  participation: ParticipationRecord;
  created: boolean;
}

/** Why an attempt failed in a way that a retry can fix. */
type Obstacle = 'provider_unknown' | 'customer_unknown' | 'reference_expired' | 'reference_unsettled';

async function tryToBook(
  { database, bookings }: CalendarDependencies,
  id: string,
  request: NewParticipation,
): Promise<CreatedParticipation | Obstacle> {
  const { crmId } = request;
  try {
    return await callOnce(database, crmId, {
      call: bookingCall(id, request),
      work: (db, answer: InsertResult) => completeBooking(db, bookings, { id, request, answer }),
      keep: (answer) =>
        typeof answer === 'string' ? undefined : { resourceIds: [answer.participation.id], created: answer.created },
      replay: async (db, { resourceIds, created }) => ({
        participation: await requireParticipation(db, { crmId, id: resourceIds[0]! }),
        created,
      }),
    });
  } catch (error) {
    // Created concurrently for another appointment: the next attempt finds it, or finds it gone.
    if (isUniqueViolation(error, 'participation_reference_key')) return 'reference_unsettled';
    throw error;
  }
}

async function completeBooking(
  db: Kysely<CalendarSchema>,
  bookings: BookingMetrics,
  { id, request, answer }: { id: string; request: NewParticipation; answer: InsertResult },
): Promise<CreatedParticipation | Obstacle> {
  bookings.expired(db, answer.reclaimed ?? 0);
  switch (answer.outcome) {
    case 'created':
      bookings.moved(db, request.crmId, undefined, request.state);
      return { participation: createdRecord(id, request, answer), created: true };
    case 'provider_unknown':
    case 'customer_unknown':
      return answer.outcome;
    case 'appointment_unknown':
      throw new DomainError('appointment.not_found');
    case 'appointment_cancelled':
      throw new DomainError('appointment.cancelled');
    case 'full':
      throw capacityExhausted(answer.capacity);
    case 'exists':
      return moveExisting(db, bookings, request, answer);
  }
}

type Outcome =
  | 'created'
  | 'provider_unknown'
  | 'appointment_unknown'
  | 'customer_unknown'
  | 'appointment_cancelled'
  | 'full'
  | 'exists';

/** See create-participation.sql. */
interface InsertResult {
  outcome: Outcome;
  reclaimed?: number;
  capacity?: number;
  appointmentId?: string;
  customerId?: string;
  name?: string;
  email?: string | null;
  mobile?: string | null;
  reservedUntil?: string | null;
}

function bookingCall(id: string, request: NewParticipation): FunctionCall {
  const { crmId, providerReference, appointmentReference, customerReference, reference, state } = request;
  const booking = {
    crmId,
    providerReference,
    appointmentReference,
    customerReference,
    id,
    reference,
    state,
    takesSeat: takesSeat(state),
    needsActive: isActive(state),
    exempt: request.ignoreCapacity,
    reservationSeconds,
    message: request.message ?? null,
    origin: changeOrigin(request.sendMails && mailsOnCreation(state)),
  };
  return { name: 'create_participation', request: booking, locks: appointmentReference };
}

async function moveExisting(
  db: Kysely<CalendarSchema>,
  bookings: BookingMetrics,
  request: NewParticipation,
  { appointmentId, customerId }: InsertResult,
): Promise<CreatedParticipation | Obstacle> {
  const existing = await findParticipation(db, { crmId: request.crmId, reference: request.reference });
  // Deleted since it was found.
  if (existing === undefined) return 'reference_unsettled';
  if (existing.expired) return 'reference_expired';
  if (request.onDuplicateRaise || existing.appointmentId !== appointmentId || existing.customerId !== customerId) {
    throw new DomainError('participation.reference_taken');
  }
  return { participation: await moveParticipation(db, bookings, existing, request), created: false };
}

function createdRecord(
  id: string,
  { reference, appointmentReference, customerReference, state, message }: NewParticipation,
  result: InsertResult,
): ParticipationRecord {
  return {
    id,
    reference,
    appointmentReference,
    customerReference,
    name: result.name!,
    email: result.email ?? null,
    mobile: result.mobile ?? null,
    note: null,
    state,
    messages: message === undefined ? [] : [message],
    reservedUntil: result.reservedUntil ? new Date(result.reservedUntil) : null,
  };
}
