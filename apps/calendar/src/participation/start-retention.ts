import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import { forgetContents } from '../appointment/forget-contents.ts';
import { databaseNow } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import { anonymiseParticipations } from './anonymise-participations.ts';

const everyMs = 60 * 60 * 1_000;
const batchSize = 500;

/**
 * Anonymises the participations of appointments that ended the given number of days ago, every hour. There is no other way for those that were
 * embedded in an appointment, as they have no customer who could be deleted. Safe with many replicas.
 */
export function startRetention(options: { database: Database<CalendarSchema>; anonymiseAfterDays: number; logger: Logger }): AsyncDisposable {
  const { database, anonymiseAfterDays, logger } = options;
  const run = (limit: number): Promise<number> => anonymiseBatch(database, anonymiseAfterDays, limit);
  return startLoop({ name: 'the anonymisation of old participations', logger, everyMs, batch: batchSize, run });
}

async function anonymiseBatch(database: Database<CalendarSchema>, anonymiseAfterDays: number, limit: number): Promise<number> {
  return database.transaction(async (tx) => {
    const participations = await tx
      .selectFrom('participation')
      .innerJoin('appointment', (join) =>
        join.onRef('appointment.crmId', '=', 'participation.crmId').onRef('appointment.id', '=', 'participation.appointmentId'),
      )
      .select(['participation.crmId', 'participation.id', 'participation.appointmentId'])
      .where('appointment.endsAt', '<', sql<Date>`${databaseNow} - make_interval(days => ${anonymiseAfterDays})`)
      .where(sql<boolean>`(participation.customer_id IS NOT NULL OR participation.name IS NOT NULL)`)
      .limit(limit)
      .forUpdate('participation')
      .skipLocked()
      .execute();
    const byCrm = Map.groupBy(participations, (participation) => participation.crmId);
    for (const [crmId, rows] of byCrm) {
      await forgetContents(tx, crmId, rows.map((row) => row.appointmentId));
      await anonymiseParticipations(tx, crmId, rows.map((row) => row.id));
    }
    return participations.length;
  });
}
