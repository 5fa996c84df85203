import { translatePostgresError } from '@scheduling/postgres';
import { DomainError, type Metrics } from '@scheduling/runtime';
import { Counter } from 'prom-client';
import { type ParticipationState, seatsOfMove, takesSeat } from './moves.ts';

/** Counts in this process what was committed; nothing is asked of the database for it. */
export interface BookingMetrics {
  /** A participation came into being in a state, or from one state into another. */
  moved(crmId: string, from: ParticipationState | undefined, to: ParticipationState): void;
  /** Passes on what the work comes to, and counts why it was refused. */
  countRefusal<Result>(crmId: string, work: Promise<Result>): Promise<Result>;
  /** Seats of participations that were removed. */
  freed(seats: number): void;
  /** Reservations whose time was over were removed, and their seats are free. */
  expired(reservations: number): void;
}

export function createBookingMetrics(metrics: Metrics): BookingMetrics {
  const registers = [metrics];
  const bookings = new Counter({
    name: 'scheduling_bookings_total',
    help: 'Participations by the state that they came into (booked, reserved, …), and bookings that were refused by the reason (capacity_exhausted, …)',
    labelNames: ['crm', 'outcome'],
    registers,
  });
  const taken = new Counter({ name: 'scheduling_seats_taken_total', help: 'Seats that participations took', registers });
  const freed = new Counter({
    name: 'scheduling_seats_freed_total',
    help: 'Seats that became free again; those of expired reservations as in scheduling_reservations_expired_total',
    registers,
  });
  const expired = new Counter({
    name: 'scheduling_reservations_expired_total',
    help: 'Reservations that were removed because their time was over; those that a booking of the same appointment removed on its way are not seen',
    registers,
  });
  return {
    moved: (crmId, from, to) => {
      bookings.inc({ crm: crmId, outcome: to.toLowerCase() });
      const seats = from === undefined ? Number(takesSeat(to)) : seatsOfMove(from, to);
      taken.inc(Math.max(0, seats));
      freed.inc(Math.max(0, -seats));
    },
    countRefusal: async (crmId, work) => {
      try {
        return await work;
      } catch (error) {
        bookings.inc({ crm: crmId, outcome: reasonOf(error) });
        throw error;
      }
    },
    freed: (seats) => freed.inc(seats),
    expired: (reservations) => {
      expired.inc(reservations);
      freed.inc(reservations);
    },
  };
}

/** `participation.capacity_exhausted` is `capacity_exhausted`, `appointment.cancelled` is `appointment_cancelled`. */
function reasonOf(error: unknown): string {
  const translated = translatePostgresError(error);
  return translated instanceof DomainError ? translated.code.replace(/^participation\./, '').replaceAll('.', '_') : 'error';
}
