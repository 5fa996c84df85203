import { DomainError } from '@scheduling/errors';
import type { Kysely } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { appendDeletions, appendRemovals } from '../events/append-events.ts';
import { requireProvider } from '../provider/provider-copy.ts';

export interface AppointmentDeletion {
  crmId: string;
  providerReference: string;
  target: { appointmentReference: string } | { seriesId: string };
}

/**
 * Deletes one appointment, or all of a series, with their participations; nobody is notified (interface 4.2). Rejects
 * with `appointment.not_found`, `series.not_found` or `provider.not_found`.
 */
export async function deleteAppointments(
  dependencies: CalendarDependencies,
  { target, ...request }: AppointmentDeletion,
): Promise<void> {
  const provider = await requireProvider(dependencies, request);
  await dependencies.database.transaction(async (tx) => {
    const targets = await selectTargets(tx, { crmId: request.crmId, providerId: provider.id, target })
      .forUpdate()
      .execute();
    const ids = targets.map((appointment) => appointment.id);
    if (ids.length === 0)
      throw 'seriesId' in target ? new DomainError('series.not_found') : new DomainError('appointment.not_found');
    const participations = await tx
      .deleteFrom('participation')
      .where('crmId', '=', request.crmId)
      .where('appointmentId', 'in', ids)
      .returning(['crmId', 'id', 'appointmentId', 'customerId', 'state', 'version', 'exempt'])
      .execute();
    await appendRemovals(tx, provider.id, participations);
    const deleted = await tx
      .deleteFrom('appointment')
      .where('crmId', '=', request.crmId)
      .where('id', 'in', ids)
      .returning(['crmId', 'id', 'providerId', 'state', 'revision', 'taken', 'capacity', 'eventCount'])
      .execute();
    await appendDeletions(tx, deleted);
    dependencies.bookings.freed(
      tx,
      deleted.reduce((sum, { taken }) => sum + taken, 0),
    );
  });
}

/** Locked in a fixed order, so that two transactions cannot deadlock. */
export function selectTargets(
  db: Kysely<CalendarSchema>,
  { crmId, providerId, target }: { crmId: string; providerId: string; target: AppointmentDeletion['target'] },
) {
  return db
    .selectFrom('appointment')
    .select('id')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .where((is) =>
      'seriesId' in target ? is('seriesId', '=', target.seriesId) : is('reference', '=', target.appointmentReference),
    )
    .orderBy('id');
}
