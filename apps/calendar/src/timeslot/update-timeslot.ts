import { collectFieldErrors } from '@scheduling/errors';
import type { Transaction } from 'kysely';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { findObstacles, lockTimeslot, type TimeslotKey } from './lock-timeslot.ts';
import { readAnswer } from './read-part.ts';
import { timeslotHasAppointments, type TimeslotRecord, type TimeslotRow, type TimeslotState } from './timeslot.ts';
import { checkWindow, isSameWindow, type Window } from './window.ts';

export interface TimeslotUpdate extends TimeslotKey {
  /** Date-times as in the interface, in the provider's time zone. */
  start?: string | undefined;
  end?: string | undefined;
  /** Minutes. */
  raster?: number | undefined;
  defaultCapacity?: number | undefined;
  defaultAcceptBookings?: boolean | undefined;
  /** Minutes; of what is booked from now on. */
  bufferBefore?: number | undefined;
  bufferAfter?: number | undefined;
  state?: TimeslotState | undefined;
}

export interface UpdatedTimeslot {
  timeslot: TimeslotRecord;
  /** Set if it has more appointments: `listTimeslots` returns them. */
  continuation?: string | undefined;
}

/**
 * Changes the fields that are given (interface 4.1). One that was made from hours is the CRM's from now on. Rejects with `timeslot.invalid`, `timeslot.not_found`,
 * `provider.not_found`, or with `timeslot.has_appointments` when the change would orphan an appointment that is not
 * cancelled.
 */
export async function updateTimeslot(
  dependencies: CalendarDependencies,
  request: TimeslotUpdate,
): Promise<UpdatedTimeslot> {
  const provider = await requireProvider(dependencies, request);
  return dependencies.database.transaction(async (tx) => {
    const timeslot = await lockTimeslot(tx, provider.id, request);
    const window = readWindow(request, timeslot, provider.timeZone);
    await refuseToOrphan(tx, timeslot, window);
    await tx
      .updateTable('timeslot')
      .set({
        ...window,
        defaultCapacity: request.defaultCapacity ?? timeslot.defaultCapacity,
        defaultAcceptBookings: request.defaultAcceptBookings ?? timeslot.defaultAcceptBookings,
        bufferBefore: request.bufferBefore ?? timeslot.bufferBefore,
        bufferAfter: request.bufferAfter ?? timeslot.bufferAfter,
        state: request.state ?? timeslot.state,
        fromHours: timeslot.fromHours && 'CHANGED',
      })
      .where('crmId', '=', request.crmId)
      .where('id', '=', timeslot.id)
      .execute();
    const scope = { crmId: request.crmId, providerId: provider.id, archiveAfterDays: dependencies.archiveAfterDays };
    const { timeslots, continuation } = await readAnswer(tx, scope, [timeslot.id]);
    return { timeslot: timeslots[0]!, continuation };
  });
}

function readWindow(request: TimeslotUpdate, timeslot: TimeslotRow, timeZone: string): Window {
  const errors = collectFieldErrors();
  const window = {
    startsAt: request.start === undefined ? timeslot.startsAt : parseDateTime(request.start, timeZone),
    endsAt: request.end === undefined ? timeslot.endsAt : parseDateTime(request.end, timeZone),
    raster: request.raster ?? timeslot.raster,
  };
  checkWindow(errors, '', window);
  errors.throwIfAny('timeslot.invalid');
  return window;
}

async function refuseToOrphan(tx: Transaction<CalendarSchema>, timeslot: TimeslotRow, after: Window): Promise<void> {
  if (isSameWindow(timeslot, after)) return;
  const orphaned = await findObstacles(tx, timeslot, after);
  if (orphaned.length > 0) throw timeslotHasAppointments(orphaned);
}
