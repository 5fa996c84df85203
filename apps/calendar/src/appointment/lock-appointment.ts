import { DomainError } from '@scheduling/errors';
import type { Selectable, Transaction } from 'kysely';
import type { AppointmentTable, CalendarSchema } from '../db/schema.ts';
import type { BookingMetrics } from '../participation/booking-metrics.ts';
import { reclaimOf } from '../participation/reclaim-reservations.ts';

interface Wanted {
  crmId: string;
  providerId: string;
  reference: string;
}

/**
 * Locks an appointment until the end of the transaction, and returns it as it is without its expired reservations: they
 * count as deleted, so it may have ended with them. Rejects with `appointment.not_found`.
 */
export async function lockAppointment(
  tx: Transaction<CalendarSchema>,
  bookings: BookingMetrics,
  { crmId, providerId, reference }: Wanted,
): Promise<Selectable<AppointmentTable>> {
  const wanted = tx
    .selectFrom('appointment')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .where('reference', '=', reference);
  const unknown = (): DomainError => new DomainError('appointment.not_found');
  const { id } = await wanted.select('id').forNoKeyUpdate().executeTakeFirstOrThrow(unknown);
  bookings.expired(tx, await reclaimOf(tx, crmId, id));
  return wanted.selectAll().executeTakeFirstOrThrow(unknown);
}
