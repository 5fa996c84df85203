import { DomainError } from '@scheduling/errors';
import { type Kysely, sql, type Transaction } from 'kysely';
import { timeOf } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import { maxNamed, type TimeslotRow } from './timeslot.ts';
import { isOrphaned, type Window } from './window.ts';

export interface TimeslotKey {
  crmId: string;
  providerReference: string;
  timeslotReference: string;
}

/** Rejects with `timeslot.not_found`. */
export function lockTimeslot(
  tx: Transaction<CalendarSchema>,
  providerId: string,
  key: TimeslotKey,
): Promise<TimeslotRow> {
  return tx
    .selectFrom('timeslot')
    .selectAll()
    .where('crmId', '=', key.crmId)
    .where('providerId', '=', providerId)
    .where('reference', '=', key.timeslotReference)
    .forUpdate()
    .executeTakeFirstOrThrow(() => new DomainError('timeslot.not_found'));
}

/**
 * The references of appointments in the window that are neither cancelled nor abandoned and hold a change back, by
 * start: all, or more than an error names. A window may contain any number of them, so Postgres compares them in one
 * pass over their index. One that is created concurrently counts as created afterwards.
 *
 * @param after what the timeslot becomes; absent: it is deleted
 */
export async function findObstacles(
  tx: Transaction<CalendarSchema>,
  timeslot: TimeslotRow,
  after?: Window,
): Promise<string[]> {
  const obstacles = await selectObstacles(tx, timeslot, after).execute();
  return obstacles.map(({ reference }) => reference);
}

/**
 * Only what a booking made can be abandoned, and is looked at by itself: Postgres does not merge the inner query, whose
 * rows are cheap, into the outer one (OFFSET 0), which ends with the last obstacle that an error names. So no plan, not
 * even one that is made without statistics, can read the participations of the whole window.
 */
export function selectObstacles(tx: Kysely<CalendarSchema>, timeslot: TimeslotRow, after?: Window) {
  const { crmId } = timeslot;
  return tx
    .selectFrom((from) => {
      const active = from
        .selectFrom('appointment')
        .select(['startsAt', 'id', 'reference', 'whenEmpty', timeOf(crmId).as('present')])
        .where('crmId', '=', crmId)
        .where('providerId', '=', timeslot.providerId)
        .where('resourceReference', '=', timeslot.resourceReference)
        .where('startsAt', '>=', timeslot.startsAt)
        .where('startsAt', '<', timeslot.endsAt)
        .where('endsAt', '<=', timeslot.endsAt)
        .where('state', '=', 'ACTIVE');
      const obstacles = after === undefined ? active : active.where(isOrphaned(timeslot, after));
      return obstacles.orderBy('startsAt').orderBy('id').offset(0).as('obstacle');
    })
    .select('reference')
    .where(sql<boolean>`(when_empty IS NULL OR NOT (
      SELECT abandoned FROM appointment, occupancy(appointment, obstacle.present) WHERE appointment.crm_id = ${crmId} AND appointment.id = obstacle.id))`)
    .orderBy('startsAt')
    .orderBy('id')
    .limit(maxNamed + 1);
}
