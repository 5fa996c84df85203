import { originJson } from '@scheduling/messaging';
import type { CalendarDependencies } from '../dependencies.ts';
import { settle } from '../participation/settle.ts';
import type { AppointmentKey } from './get-appointment.ts';

export interface AppointmentCancellation extends AppointmentKey {
  /** Text for the mails. */
  message?: string | undefined;
}

/**
 * Cancels an appointment with all its participations (interface 3.2); those that were RESERVED, REQUESTED or BOOKED get
 * a mail. Repeating it has no effect. Returns an object of the REST interface (2.5), as JSON. Rejects with
 * `appointment.not_found` or `provider.not_found`.
 */
export async function cancelAppointment(
  dependencies: CalendarDependencies,
  { crmId, providerReference, appointmentReference: reference, message }: AppointmentCancellation,
): Promise<string> {
  const { archiveAfterDays } = dependencies;
  const request = { reference, message, archiveAfterDays, origin: originJson() };
  const { appointment } = await settle<{ appointment: string }>(dependencies, {
    provider: { crmId, providerReference },
    call: () => ({ name: 'cancel_appointment', request, locks: reference }),
    busy: 'appointment.busy',
  });
  return appointment;
}
