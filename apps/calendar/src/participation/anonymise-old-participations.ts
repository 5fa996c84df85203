import type { RetentionPeriod } from '@scheduling/contracts/identity/v1';
import { type Database, forgetKeys } from '@scheduling/postgres';
import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { anonymiseParticipations } from './anonymise-participations.ts';

/**
 * Anonymises the participations of appointments that ended the given number of days ago, or as many as their CRM says
 * if those are fewer. 0: only those of CRMs that have a period of their own. Identity is asked each time: a longer
 * period, or none, applies at once. Returns how many participations or appointments, at most the limit.
 */
export async function anonymiseOldParticipations(
  {
    database,
    identity,
    anonymiseAfterDays,
  }: Pick<CalendarDependencies, 'database' | 'identity'> & { anonymiseAfterDays: number },
  limit: number,
): Promise<number> {
  const { periods } = await identity.listRetentionPeriods({});
  if (anonymiseAfterDays === 0 && periods.length === 0) return 0;
  return anonymiseBatch(database, { periods, anonymiseAfterDays }, limit);
}

/** How long participations keep the person. */
export interface Retention {
  /** Those of CRMs that have their own. */
  periods: RetentionPeriod[];
  /** For all CRMs; 0: no limit. */
  anonymiseAfterDays: number;
}

/**
 * The appointments are locked first, as for a booking. Those with more participations than the batch has room for are
 * continued in the next one.
 */
function anonymiseBatch(database: Database<CalendarSchema>, retention: Retention, limit: number): Promise<number> {
  return database.transaction(async (tx) => {
    const { rows: due } = await selectDueAppointments(retention, limit).execute(tx);
    let anonymised = 0;
    for (const [crmId, rows] of Map.groupBy(due, (appointment) => appointment.crmId)) {
      if (anonymised < limit)
        anonymised += await anonymiseAppointments(
          tx,
          crmId,
          rows.map(({ id }) => id),
          limit - anonymised,
        );
    }
    return Math.max(due.length, anonymised);
  });
}

/**
 * Locks them. Those that another replica has locked are skipped. Hours, because the length of a day depends on the
 * session's time zone.
 */
export function selectDueAppointments({ periods, anonymiseAfterDays }: Retention, limit: number) {
  return sql<{ crmId: string; id: string }>`
    SELECT due.crm_id, due.id
      FROM (SELECT DISTINCT crm_id FROM provider) AS crm
      LEFT JOIN jsonb_to_recordset(${JSON.stringify(periods)}::jsonb) AS own("crmId" text, "anonymiseAfterDays" integer) ON own."crmId" = crm.crm_id
     CROSS JOIN LATERAL (
       SELECT crm_id, id FROM appointment
        WHERE crm_id = crm.crm_id AND NOT anonymised
          AND ends_at <= (SELECT scheduling_now(crm.crm_id)) - make_interval(hours => 24 * least(own."anonymiseAfterDays", nullif(${anonymiseAfterDays}::integer, 0)))
        ORDER BY ends_at LIMIT ${limit}
          FOR NO KEY UPDATE SKIP LOCKED) AS due
     LIMIT ${limit}`;
}

/** Returns how many participations it anonymised. */
async function anonymiseAppointments(
  tx: Transaction<CalendarSchema>,
  crmId: string,
  ids: string[],
  limit: number,
): Promise<number> {
  const participations = await tx
    .selectFrom('participation')
    .select('id')
    .where('crmId', '=', crmId)
    .where(sql<boolean>`appointment_id = ANY(${ids}::uuid[])`)
    .where(leadsToPerson)
    .limit(limit)
    .execute();
  const participationIds = participations.map(({ id }) => id);
  await anonymiseParticipations(tx, crmId, participationIds);
  // A key's fingerprint is a digest of the request, also of one that embedded participants.
  await forgetKeys(tx, crmId, [...ids, ...participationIds]);
  await markAnonymised(tx, crmId, ids);
  return participationIds.length;
}

const leadsToPerson: RawBuilder<boolean> = sql<boolean>`
  (participation.customer_id IS NOT NULL OR participation.reference <> 'anonymous-' || participation.id OR EXISTS (
     SELECT FROM participation_message AS message WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id))`;

/**
 * Those in which nobody is left. An appointment's digest covers its embedded participants too; once it is cleared, a
 * retry of the creation is rejected because the reference is taken.
 */
async function markAnonymised(tx: Transaction<CalendarSchema>, crmId: string, ids: string[]): Promise<void> {
  await tx
    .updateTable('appointment')
    .set({ anonymised: true, contentDigest: Buffer.alloc(0) })
    .where('crmId', '=', crmId)
    .where(sql<boolean>`id = ANY(${ids}::uuid[])`)
    .where(sql<boolean>`NOT EXISTS (
      SELECT FROM participation WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id AND ${leadsToPerson})`)
    .execute();
}
