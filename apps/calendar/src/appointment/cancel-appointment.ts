import { ParticipationState as ParticipationStateMessage } from '@scheduling/contracts/calendar/v1';
import { AppointmentChange, ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { withRows } from '@scheduling/postgres';
import { type Selectable, sql, type Transaction } from 'kysely';
import type { AppointmentTable, CalendarSchema, ParticipationState } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { appendAppointmentChange, appendChanges, type MailEvents, newMailEvent } from '../events/append-events.ts';
import type { BookingMetrics } from '../participation/booking-metrics.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { readAppointments } from './appointment.ts';
import { lockAppointment } from './lock-appointment.ts';

export interface AppointmentCancellation {
  crmId: string;
  providerReference: string;
  appointmentReference: string;
  /** Text for the mails. */
  message?: string | undefined;
}

/**
 * Cancels an appointment with all its participations (interface 3.2); those that were RESERVED, REQUESTED or BOOKED get
 * a mail. Repeating it has no effect. Returns an object of the REST interface (2.5), as JSON. Rejects with `appointment.not_found` or `provider.not_found`.
 */
export async function cancelAppointment(
  dependencies: CalendarDependencies,
  request: AppointmentCancellation,
): Promise<string> {
  const provider = await requireProvider(dependencies, request);
  return dependencies.database.transaction(async (tx) => {
    const wanted = { crmId: request.crmId, providerId: provider.id, reference: request.appointmentReference };
    // Nobody is notified of an expired reservation.
    const appointment = await lockAppointment(tx, dependencies.bookings, wanted);
    if (appointment.state === 'ACTIVE')
      await cancelWithParticipations(tx, dependencies.bookings, appointment, request.message);
    const [cancelled] = await readAppointments(dependencies, tx, request.crmId, [appointment.id]);
    return cancelled!;
  });
}

type ActiveAppointment = Pick<Selectable<AppointmentTable>, 'crmId' | 'id' | 'providerId' | 'state' | 'revision'>;

async function cancelWithParticipations(
  tx: Transaction<CalendarSchema>,
  bookings: BookingMetrics,
  appointment: ActiveAppointment,
  message: string | undefined,
): Promise<void> {
  const { crmId, id, providerId } = appointment;
  const cancelled = await cancelParticipations(tx, crmId, id);
  const seats = cancelled.filter(({ tookSeat }) => tookSeat).length;
  await tx
    .updateTable('appointment')
    .set({ state: 'CANCELLED', taken: 0 })
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .execute();

  const told = cancelled.filter(({ wasActive }) => wasActive);
  if (message !== undefined && told.length > 0) {
    const texts = told.map((participation) => ({
      crmId,
      participationId: participation.id,
      version: participation.version,
      text: message,
    }));
    await withRows(tx.insertInto('participationMessage'), texts).execute();
  }
  const changes = cancelled.map((participation) => ({
    crmId,
    participationId: participation.id,
    version: participation.version,
    cause: ParticipationChangeCause.APPOINTMENT_CANCELLED,
    fromState: ParticipationStateMessage[participation.fromState],
    toState: ParticipationStateMessage.CANCELED,
    appointmentId: id,
    providerId,
    customerId: participation.customerId ?? undefined,
    exempt: participation.exempt,
    mail: participation.wasActive ? participation : undefined,
  }));
  await appendChanges(tx, changes);
  await appendAppointmentChange(tx, AppointmentChange.CANCELLED, appointment);
  bookings.changed(tx, crmId, { entered: { CANCELED: cancelled.length }, seats: -seats });
}

interface CancelledParticipation extends MailEvents {
  id: string;
  customerId: string | null;
  version: number;
  exempt: boolean;
  fromState: ParticipationState;
  wasActive: boolean;
  tookSeat: boolean;
}

async function cancelParticipations(
  tx: Transaction<CalendarSchema>,
  crmId: string,
  appointmentId: string,
): Promise<CancelledParticipation[]> {
  const { rows } = await sql<CancelledParticipation>`
    UPDATE participation
       SET state = 'CANCELED', version = participation.version + 1, reserved_until = NULL,
           mail_event_id = CASE WHEN is_active(participation.state) THEN ${newMailEvent} ELSE participation.mail_event_id END
     WHERE crm_id = ${crmId} AND appointment_id = ${appointmentId} AND state <> 'CANCELED'
    RETURNING id, customer_id, new.version, exempt, old.state AS from_state,
              is_active(old.state) AS was_active, takes_seat(old.state) AS took_seat, new.mail_event_id, new.invited, old.mail_event_id AS previous_mail_event_id`.execute(
    tx,
  );
  return rows;
}
