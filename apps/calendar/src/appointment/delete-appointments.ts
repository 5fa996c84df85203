import { originJson } from '@scheduling/messaging';
import type { CalendarDependencies } from '../dependencies.ts';
import { settle } from '../participation/settle.ts';

export interface AppointmentDeletion {
  crmId: string;
  providerReference: string;
  target: { reference: string } | { seriesId: string };
}

/**
 * Deletes one appointment, or all of a series, with their participations; nobody is notified (interface 4.2). Rejects
 * with `appointment.not_found`, `series.not_found` or `provider.not_found`.
 */
export async function deleteAppointments(
  dependencies: CalendarDependencies,
  { target, crmId, providerReference }: AppointmentDeletion,
): Promise<void> {
  const request = { ...target, origin: originJson() };
  const locks = 'seriesId' in target ? target.seriesId : target.reference;
  await settle(dependencies, {
    provider: { crmId, providerReference },
    call: () => ({ name: 'delete_appointments', request, locks }),
    busy: 'appointment.busy',
  });
}
