import { DomainError } from '@scheduling/errors';
import { readFunction } from '@scheduling/postgres';
import type { CalendarDependencies } from '../dependencies.ts';
import { readWithRememberedProvider } from '../provider/remembered-providers.ts';

export interface AppointmentKey {
  crmId: string;
  providerReference: string;
  appointmentReference: string;
}

/**
 * An appointment as an object of the REST interface (2.5). Rejects with `appointment.not_found` or
 * `provider.not_found`.
 */
export async function getAppointment(dependencies: CalendarDependencies, key: AppointmentKey): Promise<string> {
  const { database, archiveAfterDays } = dependencies;
  const { crmId, appointmentReference: reference } = key;
  const found = await readWithRememberedProvider(
    dependencies,
    key,
    async ({ id: providerId, version: providerVersion }) => {
      const request = { crmId, providerId, providerVersion, reference, archiveAfterDays };
      const [row] = await readFunction<{ appointment: string | null }>(database.kysely, {
        name: 'read_appointment',
        request,
      });
      return row ?? 'provider_changed';
    },
  );
  if (found.appointment === null) throw new DomainError('appointment.not_found');
  return found.appointment;
}
