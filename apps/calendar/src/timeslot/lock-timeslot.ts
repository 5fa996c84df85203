import { DomainError } from '@scheduling/errors';
import type { Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { TimeslotRow } from './timeslot.ts';

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
    .where('crm_id', '=', key.crmId)
    .where('provider_id', '=', providerId)
    .where('reference', '=', key.timeslotReference)
    .forUpdate()
    .executeTakeFirstOrThrow(() => new DomainError('timeslot.not_found'));
}

/** The appointments that lie in the window and are not cancelled. One that is created at this moment counts as created after. */
export function findLiveAppointments(tx: Transaction<CalendarSchema>, timeslot: TimeslotRow) {
  return tx
    .selectFrom('appointment')
    .select(['reference', 'starts_at', 'ends_at'])
    .where('crm_id', '=', timeslot.crm_id)
    .where('provider_id', '=', timeslot.provider_id)
    .where('resource_reference', '=', timeslot.resource_reference)
    .where('starts_at', '>=', timeslot.starts_at)
    .where('starts_at', '<', timeslot.ends_at)
    .where('ends_at', '<=', timeslot.ends_at)
    .where('state', '=', 'ACTIVE')
    .orderBy('starts_at')
    .orderBy('id')
    .execute();
}
