import { DomainError } from '@scheduling/errors';
import type { Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { TimeslotRow } from './timeslot.ts';
import { selectFromWindows } from './window.ts';

export interface TimeslotKey {
  crmId: string;
  providerReference: string;
  timeslotReference: string;
}

/** Rejects with `timeslot.not_found`. */
export function lockTimeslot(tx: Transaction<CalendarSchema>, providerId: string, key: TimeslotKey): Promise<TimeslotRow> {
  return tx
    .selectFrom('timeslot')
    .selectAll()
    .where('crmId', '=', key.crmId)
    .where('providerId', '=', providerId)
    .where('reference', '=', key.timeslotReference)
    .forUpdate()
    .executeTakeFirstOrThrow(() => new DomainError('timeslot.not_found'));
}

/** The appointments in the window that are not cancelled. One that is created concurrently counts as created afterwards. */
export function findLiveAppointments(tx: Transaction<CalendarSchema>, timeslot: TimeslotRow) {
  return selectFromWindows(tx)
    .select(['appointment.reference', 'appointment.startsAt', 'appointment.endsAt'])
    .where('timeslot.crmId', '=', timeslot.crmId)
    .where('timeslot.id', '=', timeslot.id)
    .where('appointment.state', '=', 'ACTIVE')
    .orderBy('appointment.startsAt')
    .orderBy('appointment.id')
    .execute();
}
