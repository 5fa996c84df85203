import { type Kysely, sql } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';

/**
 * Has the days made that are within reach now, because the clock of a sandbox was set; see `make-due-days.ts`. If it was
 * set back, the timeslots are made anew, as if the hours were set again: what was over before is not any more.
 */
export async function makeDaysDue(
  db: Kysely<CalendarSchema>,
  { crmId, wasSetBack }: { crmId: string; wasSetBack: boolean },
): Promise<void> {
  await update(db, { crmId, anew: wasSetBack });
}

/** Has the timeslots of a provider made anew that were not made in this time zone, as if the hours were set again. */
export async function makeInZone(
  db: Kysely<CalendarSchema>,
  { crmId, providerId, timeZone }: { crmId: string; providerId: string; timeZone: string },
): Promise<void> {
  await update(db, { crmId, anew: true, providerId, unlessIn: timeZone });
}

interface Affected {
  crmId: string;
  anew: boolean;
  providerId?: string;
  unlessIn?: string;
}

/** Waits for whoever is setting or making any, and has a result that they have calculated before dropped. */
async function update(db: Kysely<CalendarSchema>, { crmId, anew, providerId, unlessIn }: Affected): Promise<void> {
  await sql`
    UPDATE resource_hours AS hours
       SET revision = gen_random_uuid(), due_at = scheduling_now(), time_zone = CASE WHEN ${anew} THEN '' ELSE time_zone END
      FROM (
        SELECT provider_id, resource_reference FROM resource_hours
         WHERE crm_id = ${crmId} AND provider_id = coalesce(${providerId ?? null}::uuid, provider_id) AND time_zone IS DISTINCT FROM ${unlessIn ?? null}
         ORDER BY provider_id, resource_reference
           FOR NO KEY UPDATE) AS locked
     WHERE hours.crm_id = ${crmId} AND hours.provider_id = locked.provider_id AND hours.resource_reference = locked.resource_reference`.execute(
    db,
  );
}
