import { DomainError } from '@scheduling/errors';
import { afterCommit, translatePostgresError } from '@scheduling/postgres';
import type { Metrics } from '@scheduling/runtime';
import type { Kysely } from 'kysely';
import { Counter } from 'prom-client';
import type { CalendarSchema, ParticipationState } from '../db/schema.ts';

/**
 * Counts what this process committed: changes made in a transaction are counted after its commit. This needs no
 * database query.
 */
export interface BookingMetrics {
  changed(db: Kysely<CalendarSchema>, crmId: string, change: Partial<BookingChange>): void;
  /** Seats of participations that were removed. */
  freed(db: Kysely<CalendarSchema>, seats: number): void;
  /** Expired reservations were removed and their seats freed. */
  expired(db: Kysely<CalendarSchema>, reservations: number): void;
  /** Returns the result of `work`; if it is rejected, counts the reason and rethrows. */
  countRefusal<Result>(crmId: string, work: Promise<Result>): Promise<Result>;
}

/** What has become of participations that were created or changed. */
export interface BookingChange {
  /** How many entered each state, or MOVED to another appointment. */
  entered: Partial<Record<ParticipationState | 'MOVED', number>> | null;
  /** How many more seats they take; negative: fewer. */
  seats: number;
}

export function createBookingMetrics(metrics: Metrics): BookingMetrics {
  const registers = [metrics];
  const bookings = new Counter({
    name: 'scheduling_bookings_total',
    help: 'Participations by the state that they entered (booked, reserved, …) or moved to another appointment (moved), and rejected bookings by reason (capacity_exhausted, slot_taken, …)',
    labelNames: ['crm', 'outcome'],
    registers,
  });
  const taken = new Counter({ name: 'scheduling_seats_taken_total', help: 'Seats taken by participations', registers });
  const freed = new Counter({
    name: 'scheduling_seats_freed_total',
    help: 'Seats freed; those of expired reservations as in scheduling_reservations_expired_total',
    registers,
  });
  const expired = new Counter({
    name: 'scheduling_reservations_expired_total',
    help: 'Reservations removed because they expired',
    registers,
  });
  return {
    changed: (db, crmId, { entered, seats = 0 }) => {
      afterCommit(db, () => {
        for (const [outcome, count] of Object.entries(entered ?? {}))
          bookings.inc({ crm: crmId, outcome: outcome.toLowerCase() }, count);
        taken.inc(Math.max(0, seats));
        freed.inc(Math.max(0, -seats));
      });
    },
    freed: (db, seats) => afterCommit(db, () => freed.inc(seats)),
    expired: (db, reservations) => {
      afterCommit(db, () => {
        expired.inc(reservations);
        freed.inc(reservations);
      });
    },
    countRefusal: async (crmId, work) => {
      try {
        return await work;
      } catch (error) {
        bookings.inc({ crm: crmId, outcome: reasonOf(error) });
        throw error;
      }
    },
  };
}

/**
 * `participation.capacity_exhausted` is `capacity_exhausted`, `appointment.cancelled` is `appointment_cancelled`, a
 * slot that is taken is `slot_taken`.
 */
export function reasonOf(error: unknown): string {
  const translated = translatePostgresError(error);
  if (!(translated instanceof DomainError)) return 'error';
  const { code, reason } = translated;
  return reason === undefined ? code.replace(/^participation\./, '').replaceAll('.', '_') : `slot_${reason}`;
}
