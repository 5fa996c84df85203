import { DomainError } from '@scheduling/errors';
import type { AppointmentState } from '../db/schema.ts';

export const participationStates = ['RESERVED', 'REQUESTED', 'BOOKED', 'CANCELED', 'DELETED'] as const;
export type ParticipationState = (typeof participationStates)[number];

interface AllowedMove {
  /** Whether the participant receives a mail about it. */
  mail: boolean;
}

/** The allowed moves from each state (interface 3.1). */
const moves: Record<ParticipationState, Partial<Record<ParticipationState, AllowedMove>>> = {
  RESERVED: { BOOKED: { mail: true }, CANCELED: { mail: false } },
  REQUESTED: { BOOKED: { mail: true }, CANCELED: { mail: true } },
  BOOKED: { CANCELED: { mail: true }, DELETED: { mail: false } },
  CANCELED: {},
  DELETED: { CANCELED: { mail: false } },
};

/**
 * The effects of the move; undefined when the participation is already in this state, so that nothing happens. Throws
 * `participation.state_unsupported`, `participation.move_not_allowed` or `appointment.cancelled`.
 */
export function checkMove(
  from: ParticipationState,
  to: ParticipationState,
  appointment: AppointmentState,
): AllowedMove | undefined {
  if (from === to) return undefined;
  if (to === 'RESERVED' || to === 'REQUESTED') {
    throw new DomainError('participation.state_unsupported', {
      text: `A participation cannot be moved to ${to}; create a new one instead.`,
      errors: [{ pointer: '/state', detail: `cannot be ${to} in an update` }],
    });
  }
  if (to === 'BOOKED' && appointment === 'CANCELLED') throw new DomainError('appointment.cancelled');
  const move = moves[from][to];
  if (move === undefined) throw moveNotAllowed(from, to);
  return move;
}

export function takesSeat(state: ParticipationState): boolean {
  return state === 'BOOKED' || state === 'RESERVED';
}

/** The change in taken seats. */
export function seatsOfMove(from: ParticipationState, to: ParticipationState): number {
  return Number(takesSeat(to)) - Number(takesSeat(from));
}

/**
 * Whether the participant expects the appointment to take place. If so, the state can be entered only while the
 * appointment is not cancelled, the participant is notified of a cancellation by mail (interface 3.2), and the
 * participation blocks the customer's deletion (interface 4.4).
 */
export function isActive(state: ParticipationState): boolean {
  return takesSeat(state) || state === 'REQUESTED';
}

/** BOOKED is confirmed and REQUESTED acknowledged by mail; the other states are not. */
export function mailsOnCreation(state: ParticipationState): boolean {
  return state === 'BOOKED' || state === 'REQUESTED';
}

function moveNotAllowed(from: ParticipationState, to: ParticipationState): DomainError {
  const allowed = Object.keys(moves[from]).join(' and ');
  return new DomainError('participation.move_not_allowed', {
    text: `A participation that is ${from} cannot become ${to}; allowed from here: ${allowed || 'nothing'}.`,
  });
}
