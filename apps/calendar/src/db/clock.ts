import { type RawBuilder, sql } from 'kysely';

/** The database's clock in a query; as a subquery it is evaluated once, so an index can be used. */
export const databaseNow: RawBuilder<Date> = sql<Date>`(SELECT scheduling_now())`;

/** Appointments that ended at this time or earlier are archived. Hours, because the length of a day depends on the session's time zone. */
export function archivedUntil(archiveAfterDays: number): RawBuilder<Date> {
  return sql<Date>`(SELECT scheduling_now() - make_interval(hours => ${archiveAfterDays * 24}))`;
}
