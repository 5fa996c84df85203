import { type RawBuilder, sql } from 'kysely';

/**
 * The time of a CRM in a query: that of the database or, of a sandbox, by its own clock. Reservations, archiving and
 * booking rules depend on it. As a subquery it is evaluated once, so an index can be used.
 */
export function timeOf(crmId: string): RawBuilder<Date> {
  return sql<Date>`(SELECT scheduling_now(${crmId}))`;
}
