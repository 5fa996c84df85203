import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { findObstacles, lockTimeslot, type TimeslotKey } from './lock-timeslot.ts';
import { timeslotHasAppointments } from './timeslot.ts';

/**
 * Deletes a timeslot (interface 4.1). Rejects with `timeslot.not_found`, `provider.not_found`, or with
 * `timeslot.has_appointments` while an appointment in its window is not cancelled.
 */
export async function deleteTimeslot(dependencies: CalendarDependencies, request: TimeslotKey): Promise<void> {
  const provider = await requireProvider(dependencies, request);
  await dependencies.database.transaction(async (tx) => {
    const timeslot = await lockTimeslot(tx, provider.id, request);
    const obstacles = await findObstacles(tx, timeslot);
    if (obstacles.length > 0) throw timeslotHasAppointments(obstacles);
    await tx.deleteFrom('timeslot').where('crmId', '=', request.crmId).where('id', '=', timeslot.id).execute();
  });
}
