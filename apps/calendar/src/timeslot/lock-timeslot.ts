import { DomainError } from '@scheduling/errors';
import { sql, type Transaction } from 'kysely';
import { timeOf } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import { lowestId, type PagePosition } from '../page-cursor.ts';
import { maxNamed, type TimeslotRow } from './timeslot.ts';

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

/** One that holds a change of its timeslot back. */
export interface LiveAppointment {
  startsAt: Date;
  endsAt: Date;
}

/**
 * The references of appointments in the window that are neither cancelled nor abandoned and hold a change back, by start: all, or more than an error names. They are read
 * in batches, because a window may contain any number of them. One that is created concurrently counts as created afterwards.
 */
export async function findObstacles(
  tx: Transaction<CalendarSchema>,
  timeslot: TimeslotRow,
  isObstacle: (appointment: LiveAppointment) => boolean = () => true,
): Promise<string[]> {
  const references: string[] = [];
  let after: PagePosition = { startsAt: timeslot.startsAt, id: lowestId };
  for (;;) {
    const batch = await selectLiveAppointments(tx, timeslot, after).execute();
    references.push(...batch.filter(isObstacle).map(({ reference }) => reference));
    if (batch.length < batchSize || references.length > maxNamed) return references;
    const { startsAt, id } = batch.at(-1)!;
    after = { startsAt, id };
  }
}

const batchSize = 1_000;

function selectLiveAppointments(tx: Transaction<CalendarSchema>, timeslot: TimeslotRow, after: PagePosition) {
  return tx
    .selectFrom('appointment')
    .select(['id', 'reference', 'startsAt', 'endsAt'])
    .where('crmId', '=', timeslot.crmId)
    .where('providerId', '=', timeslot.providerId)
    .where('resourceReference', '=', timeslot.resourceReference)
    .where(sql<boolean>`(starts_at, id) > (${after.startsAt}::timestamptz, ${after.id}::uuid)`)
    .where('startsAt', '<', timeslot.endsAt)
    .where('endsAt', '<=', timeslot.endsAt)
    .where('state', '=', 'ACTIVE')
    .where(sql<boolean>`NOT (SELECT abandoned FROM occupancy(appointment, ${timeOf(timeslot.crmId)}))`)
    .orderBy('startsAt')
    .orderBy('id')
    .limit(batchSize);
}
