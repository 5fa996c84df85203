import { sql } from 'kysely';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';

/** What has been made from the hours of a resource. */
export interface MadeHours {
  providerReference: string;
  resourceReference: string;
  timeZone: string;
  /** YYYY-MM-DD. */
  madeFrom: string;
  madeUntil: string;
  aheadDays: number;
  dueAt: Date;
  /** Of those that are not over: made from the hours, hidden, and changed by the CRM. */
  timeslots: number;
  hidden: number;
  changed: number;
}

const maxListed = 500;

/** For operators: see the RPC. Rejects with `provider.not_found`. */
export async function listHours(
  dependencies: CalendarDependencies,
  { crmId, providerReference }: { crmId: string; providerReference?: string | undefined },
): Promise<MadeHours[]> {
  const provider =
    providerReference === undefined ? undefined : await requireProvider(dependencies, { crmId, providerReference });
  const { rows } = await sql<MadeHours>`
    SELECT provider.reference AS provider_reference, hours.resource_reference, hours.time_zone, made_from, made_until, (content ->> 'aheadDays')::integer AS ahead_days,
           due_at, counted.*
      FROM (SELECT scheduling_now(${crmId}) AS present OFFSET 0) AS times
     CROSS JOIN resource_hours AS hours
      JOIN provider ON provider.crm_id = hours.crm_id AND provider.id = hours.provider_id
     CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE from_hours = 'MADE') AS timeslots, count(*) FILTER (WHERE from_hours = 'HIDDEN') AS hidden,
              count(*) FILTER (WHERE from_hours = 'CHANGED') AS changed
         FROM timeslot
        WHERE timeslot.crm_id = hours.crm_id AND timeslot.provider_id = hours.provider_id AND timeslot.resource_reference = hours.resource_reference
          AND starts_at > present - interval '48 hours' AND ends_at > present) AS counted
     WHERE hours.crm_id = ${crmId} AND hours.provider_id = coalesce(${provider?.id ?? null}::uuid, hours.provider_id)
     ORDER BY provider.reference, hours.resource_reference
     LIMIT ${maxListed}`.execute(dependencies.database.kysely);
  return rows;
}
