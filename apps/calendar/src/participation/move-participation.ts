import type { Customer } from '@scheduling/contracts/customer/v1';
import { DomainError } from '@scheduling/errors';
import { callFunction } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import { preparedContent } from '../customer/preparation.ts';
import type { AppointmentState, CalendarSchema } from '../db/schema.ts';
import { changeOrigin } from '../events/append-events.ts';
import type { BookingMetrics } from './booking-metrics.ts';
import { checkMove, isActive, type ParticipationState, seatsOfMove } from './moves.ts';
import { capacityExhausted, parseRecord, type ParticipationRecord, type WrittenRecord } from './participation.ts';

/** A participation with what determines its allowed moves. */
export interface MovableParticipation extends ParticipationRecord {
  crmId: string;
  appointmentId: string;
  customerId: string | null;
  appointmentState: AppointmentState;
  version: number;
  /** A reservation that has expired, by the database's clock. */
  expired: boolean;
}

export interface RequestedMove {
  state: ParticipationState;
  message?: string | undefined;
  ignoreCapacity: boolean;
  sendMails: boolean;
  /** Of a hold that has none yet. */
  customer?: { providerReference: string; customerReference: string; prepared?: Customer | undefined } | undefined;
}

/**
 * Every move increments the version, and the state graph is acyclic: its longest path (REQUESTED, BOOKED, DELETED,
 * CANCELED) has three moves.
 */
const maxAttempts = 5;

/**
 * Moves a participation to another state by the table of interface 3.1, in one round trip with the seat and the event.
 * A concurrent move is taken into account. The caller reports the commit. Returns the participation as it was found,
 * with the new state; for one that had the state already, as it is. Rejects with `participation.not_found`,
 * `participation.state_unsupported`, `participation.move_not_allowed`, `participation.capacity_exhausted`,
 * `appointment.cancelled`, `booking.customer_missing`, or with `customer.not_found` if calendar does not know the
 * customer.
 */
export async function moveParticipation(
  db: Kysely<CalendarSchema>,
  bookings: BookingMetrics,
  present: MovableParticipation,
  move: RequestedMove,
): Promise<MovableParticipation> {
  let current: MovableParticipation | undefined = present;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    if (current === undefined || current.expired) throw new DomainError('participation.not_found');
    const allowed = checkMove(current.state, move.state, current.appointmentState);
    if (allowed === undefined) return current;
    if (move.state === 'BOOKED' && move.customer === undefined && isAnonymousHold(current))
      throw new DomainError('booking.customer_missing');
    const { outcome, reclaimed = 0, capacity } = await writeMove(db, current, move, allowed.mail && move.sendMails);
    bookings.expired(db, reclaimed);
    switch (outcome) {
      case 'moved':
        bookings.moved(db, current.crmId, current.state, move.state);
        return movedRecord(current, move);
      case 'gone':
        throw new DomainError('participation.not_found');
      case 'appointment_cancelled':
        throw new DomainError('appointment.cancelled');
      case 'full':
        throw capacityExhausted(capacity);
      case 'customer_unknown':
        throw new DomainError('customer.not_found');
      case 'stale': {
        const found = await findParticipation(db, { crmId: current.crmId, reference: current.reference });
        // If this one has been deleted since, the reference may belong to another one.
        current = found?.id === current.id ? found : undefined;
      }
    }
  }
  throw new DomainError('participation.busy');
}

/** Nobody knows yet for whom the seat is held. */
function isAnonymousHold({ state, customerId, name }: MovableParticipation): boolean {
  return state === 'RESERVED' && customerId === null && name === '';
}

/** See find-participation.sql. */
export async function findParticipation(
  db: Kysely<CalendarSchema>,
  request: { crmId: string; reference: string; providerReference?: string },
): Promise<MovableParticipation | undefined> {
  const found = await callFunction<WrittenRecord<MovableParticipation> | null>(db, {
    name: 'find_participation',
    request,
    locks: '',
  });
  return found === null ? undefined : parseRecord(found);
}

/** See move-participation.sql. */
interface MoveResult {
  outcome: 'moved' | 'gone' | 'stale' | 'appointment_cancelled' | 'full' | 'customer_unknown';
  reclaimed?: number;
  capacity?: number;
}

function writeMove(
  db: Kysely<CalendarSchema>,
  current: MovableParticipation,
  move: RequestedMove,
  notify: boolean,
): Promise<MoveResult> {
  const request = {
    crmId: current.crmId,
    participationId: current.id,
    expectedVersion: current.version,
    state: move.state,
    seats: seatsOfMove(current.state, move.state),
    needsActive: isActive(move.state),
    exempt: move.ignoreCapacity,
    message: move.message ?? null,
    origin: changeOrigin(notify),
    ...(move.customer && customerOf(move.customer)),
  };
  return callFunction(db, { name: 'move_participation', request, locks: current.appointmentReference });
}

function customerOf({ providerReference, customerReference, prepared }: NonNullable<RequestedMove['customer']>) {
  return { providerReference, customerReference, ...(prepared && { prepared: preparedContent(prepared) }) };
}

function movedRecord(current: MovableParticipation, { state, message, customer }: RequestedMove): MovableParticipation {
  return {
    ...current,
    customerReference: customer?.customerReference ?? current.customerReference,
    state,
    reservedUntil: null,
    messages: message === undefined ? current.messages : [...current.messages, message],
  };
}
