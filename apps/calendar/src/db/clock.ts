import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { CalendarSchema } from './schema.ts';

/**
 * The time of a CRM in a query: that of the database or, of a sandbox, by its own clock. Reservations, archiving and
 * booking rules depend on it. As a subquery it is evaluated once, so an index can be used.
 */
export function timeOf(crmId: string): RawBuilder<Date> {
  return sql<Date>`(SELECT scheduling_now(${crmId}))`;
}

export interface CrmClock {
  now: Date;
  /** How far it is ahead of the real time; negative: behind. Only the clock of a sandbox is. */
  aheadMs: number;
}

export async function readClock(db: Kysely<CalendarSchema>, crmId: string): Promise<CrmClock> {
  const { rows } = await sql<CrmClock>`
    SELECT scheduling_now(${crmId}) AS now, coalesce((SELECT ahead_ms FROM sandbox_clock WHERE crm_id = ${crmId}), 0) AS ahead_ms`.execute(
    db,
  );
  return rows[0]!;
}
